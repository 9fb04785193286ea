import pino from 'pino'
import type { Config } from '../../src/config.ts'
import type { IdentityProviderConfig } from '../../src/identity-providers/sign-in-settings.ts'
import { type OpenIdProvider, startOpenIdProvider } from '../support/openid-provider.ts'
import { createTestService, type TestService } from '../support/test-service.ts'

export type SignInSetup = {
  idp: OpenIdProvider
  service: TestService
  /** What the service has logged. */
  logged: Record<string, unknown>[]
  /** How far the service's clock is ahead of the provider's. */
  setClockAhead: (seconds: number) => void
  stop: () => Promise<void>
}

/** The service with a real OpenID Connect provider beside it. */
export async function setUpSignIn(
  options: {
    config?: Partial<Config>
    /** Configures the provider a second time, by its other client. */
    isTwice?: boolean
  } = {},
): Promise<SignInSetup> {
  const idp = await startOpenIdProvider()
  const logged: Record<string, unknown>[] = []
  let aheadMs = 0
  const provider: IdentityProviderConfig = {
    id: 'oidc',
    name: 'Example SSO',
    issuer: idp.issuer,
    clientId: idp.client.id,
    clientSecret: idp.client.secret,
  }
  const second: IdentityProviderConfig = {
    ...provider,
    id: 'google',
    clientId: idp.otherClient.id,
    clientSecret: idp.otherClient.secret,
  }
  const service = await createTestService({
    config: { identityProviders: options.isTwice ? [provider, second] : [provider], ...options.config },
    clock: () => new Date(Date.now() + aheadMs),
    log: pino({ level: 'warn' }, { write: (line: string) => logged.push(JSON.parse(line)) }),
  })
  idp.allowRedirectTo(`${service.baseUrl}/sign-in/with/${provider.id}/callback`)
  return {
    idp,
    service,
    logged,
    setClockAhead: (seconds) => {
      aheadMs = seconds * 1000
    },
    stop: async () => {
      await service.stop()
      await idp.stop()
    },
  }
}
