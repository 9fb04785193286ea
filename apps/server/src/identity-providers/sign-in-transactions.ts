import { EncryptJWT, errors, jwtDecrypt } from 'jose'
import { z } from 'zod'
import type { Deps } from '../deps.ts'
import { hashToken } from '../random-tokens.ts'
import { findOrCreateSecret } from '../server-secrets.ts'

export const transactionLifetimeSeconds = 600

/** What the browser keeps for us between leaving for a provider and coming back. */
export type SignInTransaction = z.output<typeof Transaction>

const Transaction = z.object({
  providerId: z.string(),
  state: z.string(),
  nonce: z.string(),
  codeVerifier: z.string(),
  returnTo: z.string(),
})

/** One cookie for each state: sign-ins in two tabs do not disturb each other. */
export function nameTransactionCookie(publicUrl: string, state: string): string {
  return `${transactionCookiePrefix(publicUrl)}${hashToken(state).toString('hex').slice(0, 16)}`
}

/** With `__Host-` a browser takes it from no other host, so nobody can plant a sign-in of their own (RFC 6265bis, 4.1.3.2). */
export function transactionCookiePrefix(publicUrl: string): string {
  return `${publicUrl.startsWith('https:') ? '__Host-' : ''}godwit_sign_in_`
}

/** Encrypted: whoever reads the cookie must not learn the verifier, and nobody can make one. */
export async function sealTransaction(deps: Deps, transaction: SignInTransaction): Promise<string> {
  return await new EncryptJWT({ ...transaction })
    .setProtectedHeader({ alg: 'dir', enc: 'A256GCM' })
    .setExpirationTime(new Date(deps.clock().getTime() + transactionLifetimeSeconds * 1000))
    .encrypt(await findKey(deps))
}

/** undefined when it was altered, has expired or is not ours. */
export async function openTransaction(deps: Deps, cookie: string): Promise<SignInTransaction | undefined> {
  try {
    const { payload } = await jwtDecrypt(cookie, await findKey(deps), {
      keyManagementAlgorithms: ['dir'],
      contentEncryptionAlgorithms: ['A256GCM'],
      currentDate: deps.clock(),
      requiredClaims: ['exp'],
    })
    return Transaction.safeParse(payload).data
  } catch (error) {
    if (error instanceof errors.JOSEError) return undefined
    throw error
  }
}

async function findKey(deps: Deps): Promise<Uint8Array> {
  return await findOrCreateSecret(deps.db, { name: 'sign-in-transactions' })
}
