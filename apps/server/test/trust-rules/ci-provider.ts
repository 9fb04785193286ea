import { randomUUID } from 'node:crypto'
import { OAuth2Server } from 'oauth2-mock-server'
import type { Deps } from '../../src/deps.ts'
import { findFreePort } from '../../src/embedded-postgres/launch.ts'
import { exchangeToken } from '../../src/trust-rules/exchange-token.ts'

/** An OpenID Connect issuer that signs what a CI system would say of a job. */
export type CiProvider = {
  issuer: string
  server: OAuth2Server
  /** Claims of a good job at `now`, changed by `claims`; undefined removes one. */
  buildToken: (claims?: Record<string, unknown>, options?: { kid?: string }) => Promise<string>
  stop: () => Promise<void>
}

export async function startCiProvider(options: { audience: () => string; now: () => Date }): Promise<CiProvider> {
  const server = new OAuth2Server()
  await server.issuer.keys.generate('RS256')
  const port = await findFreePort()
  await server.start(port, '127.0.0.1')
  const issuer = `http://127.0.0.1:${port}`
  server.issuer.url = issuer
  const buildToken = async (claims: Record<string, unknown> = {}, { kid }: { kid?: string } = {}) =>
    await server.issuer.buildToken({
      ...(kid === undefined ? {} : { kid }),
      scopesOrTransform: (_header, payload) => {
        const iat = Math.floor(options.now().getTime() / 1000)
        Object.assign(payload, {
          aud: options.audience(),
          sub: 'repo:acme/app:ref:refs/heads/main',
          jti: randomUUID(),
          iat,
          nbf: iat,
          exp: iat + 300,
          repository: 'acme/app',
          workflow_ref: 'acme/app/.github/workflows/release.yml@refs/heads/main',
          ref: 'refs/heads/main',
          run_id: '42',
          ...claims,
        })
        for (const [name, value] of Object.entries(payload)) if (value === undefined) delete payload[name]
      },
    })
  return { issuer, server, buildToken, stop: async () => await server.stop() }
}

/** A request that comes from nowhere. */
export const noSource = { address: undefined, userAgent: undefined, correlationId: undefined }

export async function exchange(deps: Deps, subjectToken: string, input: { serviceAccountId?: number } = {}) {
  return await exchangeToken(deps, {
    subjectToken,
    source: noSource,
    subjectTokenType: 'urn:ietf:params:oauth:token-type:id_token',
    ...(input.serviceAccountId === undefined ? {} : { serviceAccountId: String(input.serviceAccountId) }),
  })
}
