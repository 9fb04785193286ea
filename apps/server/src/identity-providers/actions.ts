import {
  AuthorizationResponseError,
  authorizationCodeGrant,
  buildAuthorizationUrl,
  ClientError,
  calculatePKCECodeChallenge,
  fetchUserInfo,
  ResponseBodyError,
  randomPKCECodeVerifier,
  type TokenEndpointResponse,
} from 'openid-client'
import type { Deps } from '../deps.ts'
import { AppError } from '../errors.ts'
import { signUpWithIdentity } from '../identities/actions.ts'
import { generateToken } from '../random-tokens.ts'
import type { SignIn } from '../sessions/actions.ts'
import {
  type DiscoveredProvider,
  describeError,
  type IdentityProvider,
  providerUnavailable,
} from './identity-provider.ts'
import { type ProviderClaims, readDisplayName, readEmail, readIsMfa, readVerifiedEmail } from './rules.ts'
import { type SignInTransaction, sealTransaction } from './sign-in-transactions.ts'
import { type IdTokenClaims, verifyIdToken } from './verify-id-token.ts'

/** Where the provider sends the browser back to; the operator registers it there. */
export function callbackUrl(deps: Deps, provider: IdentityProvider): URL {
  return new URL(`${deps.config.publicUrl}/sign-in/with/${provider.config.id}/callback`)
}

/** Sends a browser to the provider: where to, and what the browser has to bring back besides. */
export async function beginSignIn(
  deps: Deps,
  provider: IdentityProvider,
  input: { returnTo: string },
): Promise<{ url: URL; state: string; sealed: string }> {
  const { client } = await provider.discover()
  const transaction: SignInTransaction = {
    providerId: provider.config.id,
    state: generateToken(),
    nonce: generateToken(),
    codeVerifier: randomPKCECodeVerifier(),
    returnTo: input.returnTo,
  }
  const url = buildAuthorizationUrl(client, {
    redirect_uri: callbackUrl(deps, provider).href,
    scope: 'openid email profile',
    state: transaction.state,
    nonce: transaction.nonce,
    code_challenge: await calculatePKCECodeChallenge(transaction.codeVerifier),
    code_challenge_method: 'S256',
  })
  return { url, state: transaction.state, sealed: await sealTransaction(deps, transaction) }
}

/** Takes what the provider sent back with the browser, and finds or creates the account of the person. */
export async function finishSignIn(
  deps: Deps,
  provider: IdentityProvider,
  input: { search: string; transaction: SignInTransaction },
): Promise<SignIn> {
  const discovered = await provider.discover()
  try {
    const tokens = await redeemCode(deps, provider, discovered, input)
    const verdict = await verifyIdToken(deps, provider, tokens.id_token ?? '')
    if ('refusal' in verdict) throw new AppError('forbidden', refuseToken(deps, provider, verdict.refusal))
    const { claims } = verdict
    const described = await describePerson(discovered, tokens, claims)
    const identity = {
      issuer: claims.iss,
      subject: claims.sub,
      verifiedEmail: readVerifiedEmail(provider.config.id, described),
    }
    const account = await signUpWithIdentity(deps, identity, { displayName: readDisplayName(described) })
    return { userId: account.id, issuer: claims.iss, isMfa: readIsMfa(claims) }
  } catch (error) {
    throw toRefusal(deps, provider, error)
  }
}

async function redeemCode(
  deps: Deps,
  provider: IdentityProvider,
  discovered: DiscoveredProvider,
  input: { search: string; transaction: SignInTransaction },
): Promise<TokenEndpointResponse> {
  const { transaction } = input
  const url = callbackUrl(deps, provider)
  url.search = input.search
  return await authorizationCodeGrant(discovered.client, url, {
    expectedState: transaction.state,
    expectedNonce: transaction.nonce,
    pkceCodeVerifier: transaction.codeVerifier,
    idTokenExpected: true,
  })
}

/** Some providers tell the e-mail only when asked for it with the access token (OpenID Connect Core 1.0, 5.4). */
async function describePerson(
  discovered: DiscoveredProvider,
  tokens: TokenEndpointResponse,
  claims: IdTokenClaims,
): Promise<ProviderClaims> {
  if (readEmail(claims) !== undefined || discovered.client.serverMetadata().userinfo_endpoint === undefined)
    return claims
  return await fetchUserInfo(discovered.client, tokens.access_token, claims.sub)
}

function refuseToken(deps: Deps, provider: IdentityProvider, reason: string): string {
  deps.log.warn({ provider: provider.config.id, reason }, 'an ID token was refused')
  return `${provider.config.name} answered with a token that is not good.`
}

/** What a person is told when the provider, or what it sent, does not let them in. The log has the rest. */
function toRefusal(deps: Deps, provider: IdentityProvider, error: unknown): unknown {
  const { id, name } = provider.config
  const log = (tried: string) =>
    deps.log.warn({ provider: id, tried, reason: describeError(error) }, 'a sign-in failed')
  if (error instanceof AuthorizationResponseError) {
    log(`the provider refused: ${error.error.slice(0, 100)}`)
    return new AppError('forbidden', `${name} did not sign you in. Try again, or sign in another way.`)
  }
  if (isUnavailable(error)) {
    log('the provider does not answer')
    return providerUnavailable(provider.config)
  }
  if (error instanceof ResponseBodyError) log(`a code that is not good: ${error.error.slice(0, 100)}`)
  else if (error instanceof ClientError) log('an answer that is not good')
  else return error
  return new AppError('invalid_request', `${name} did not confirm this sign-in. Begin again.`)
}

function isUnavailable(error: unknown): boolean {
  if (error instanceof ResponseBodyError) return error.status >= 500
  if (error instanceof ClientError) return error.code === 'OAUTH_TIMEOUT' || isServerFault(error.cause)
  // What fetch throws when there is no connection.
  return error instanceof TypeError && error.message === 'fetch failed'
}

function isServerFault(cause: unknown): boolean {
  return cause instanceof Response && cause.status >= 500
}
