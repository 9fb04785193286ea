import { createRemoteJWKSet } from 'jose'
import {
  allowInsecureRequests,
  type ClientAuth,
  ClientSecretBasic,
  ClientSecretPost,
  type Configuration,
  discovery,
  None,
} from 'openid-client'
import type { Logger } from 'pino'
import { AppError } from '../errors.ts'
import { chooseAlgorithms } from './rules.ts'
import type { IdentityProviderConfig } from './sign-in-settings.ts'

/** An answer of a provider is waited for so long. */
const timeoutSeconds = 5
/** Endpoints of a provider hardly ever change. */
const rediscoverAfterMs = 24 * 3600_000
/** A provider that is down is not asked again by every request. */
const retryAfterMs = 5_000
/** Tokens with invented keys cause no more fetches than one in this time. */
const refetchKeysAtMostEveryMs = 30_000
/** A key that the provider has withdrawn is honoured for so long. */
const refetchKeysAfterMs = 600_000

export type IdentityProvider = {
  config: IdentityProviderConfig
  /** Reads the provider's metadata when that is due. Throws `unavailable` when it does not answer and never has. */
  discover: () => Promise<DiscoveredProvider>
}

export type DiscoveredProvider = {
  client: Configuration
  /** As the metadata has it; Entra ID has a template there. */
  issuer: string
  keysUrl: string
  keys: ReturnType<typeof createRemoteJWKSet>
  algorithms: string[]
}

/** The providers that the operator has configured. None is asked anything before somebody signs in with it. */
export function createIdentityProviders(options: {
  configs: IdentityProviderConfig[]
  clock: () => Date
  log: Logger
}): IdentityProvider[] {
  const { configs, clock, log } = options
  return configs.map((config) => createIdentityProvider({ config, clock, log }))
}

function createIdentityProvider(options: {
  config: IdentityProviderConfig
  clock: () => Date
  log: Logger
}): IdentityProvider {
  const { config, clock, log } = options
  let discovered: { provider: DiscoveredProvider; at: number } | undefined
  let failedAt = Number.NEGATIVE_INFINITY
  let pending: Promise<void> | undefined

  const fetchOnce = async () => {
    const now = clock().getTime()
    try {
      discovered = { provider: await readProvider(config, discovered?.provider), at: now }
    } catch (error) {
      failedAt = now
      log.warn({ provider: config.id, reason: describeError(error) }, 'an identity provider cannot be discovered')
    }
  }
  const fetchSoon = () => {
    const sinceFailureMs = clock().getTime() - failedAt
    if (sinceFailureMs >= 0 && sinceFailureMs < retryAfterMs) return
    pending ??= fetchOnce().finally(() => {
      pending = undefined
    })
  }

  return {
    config,
    async discover() {
      if (discovered === undefined) {
        fetchSoon()
        await pending
      } else if (clock().getTime() - discovered.at >= rediscoverAfterMs) {
        // What is known goes on working while the provider is asked, and when it does not answer.
        fetchSoon()
      }
      if (discovered === undefined) throw providerUnavailable(config)
      return discovered.provider
    },
  }
}

export function providerUnavailable(config: IdentityProviderConfig): AppError {
  return new AppError('unavailable', `${config.name} does not answer.`, { retryAfterSeconds: 5 })
}

/** What the log is told of an error of the network or of the provider: libraries wrap the cause, some more than once. */
export function describeError(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.cause instanceof Error ? `${error.message}: ${describeError(error.cause)}` : error.message
}

async function readProvider(
  config: IdentityProviderConfig,
  previous: DiscoveredProvider | undefined,
): Promise<DiscoveredProvider> {
  const issuer = new URL(config.issuer)
  const client = await discovery(issuer, config.clientId, undefined, authenticateClient(config.clientSecret), {
    timeout: timeoutSeconds,
    // The configuration takes http from issuers on this machine only.
    execute: issuer.protocol === 'http:' ? [allowInsecureRequests] : [],
  })
  const metadata = client.serverMetadata()
  if (metadata.jwks_uri === undefined) throw new Error('its metadata has no jwks_uri')
  // The same keys go on being cached when nothing has changed.
  const keys =
    previous?.keysUrl === metadata.jwks_uri
      ? previous.keys
      : createRemoteJWKSet(new URL(metadata.jwks_uri), {
          timeoutDuration: timeoutSeconds * 1000,
          cooldownDuration: refetchKeysAtMostEveryMs,
          cacheMaxAge: refetchKeysAfterMs,
        })
  return {
    client,
    issuer: metadata.issuer,
    keysUrl: metadata.jwks_uri,
    keys,
    algorithms: chooseAlgorithms(metadata.id_token_signing_alg_values_supported),
  }
}

/** client_secret_basic is what a provider that lists nothing takes (OpenID Connect Discovery 1.0, 3). */
function authenticateClient(secret: string | undefined): ClientAuth {
  if (secret === undefined) return None()
  const [post, basic] = [ClientSecretPost(secret), ClientSecretBasic(secret)]
  return (metadata, ...rest) => {
    const takesPost = metadata.token_endpoint_auth_methods_supported?.includes('client_secret_post') === true
    return takesPost ? post(metadata, ...rest) : basic(metadata, ...rest)
  }
}
