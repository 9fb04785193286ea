import type { SignUpPolicy } from '../identity-providers/sign-in-settings.ts'

/** Whether an e-mail that an identity provider vouches for may have an account of its own. */
export function canSignUp(policy: SignUpPolicy, input: { email: string; isInvited: boolean }): boolean {
  if (policy === 'open' || input.isInvited) return true
  return policy !== 'invited' && policy.includes(readDomain(input.email))
}

/** The domain of an e-mail, in lower case. */
export function readDomain(email: string): string {
  return email.slice(email.lastIndexOf('@') + 1).toLowerCase()
}
