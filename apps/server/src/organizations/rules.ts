import type { EventDetails } from '../audit/record-event.ts'
import { readDomain } from '../identities/rules.ts'

/** Without a list every domain will do. */
export function isDomainAllowed(allowedDomains: string[], email: string): boolean {
  return allowedDomains.length === 0 || allowedDomains.includes(readDomain(email))
}

/** What an event about a member was done to. */
export function listMemberResources(input: { organizationId: number; userId: number }): EventDetails['resources'] {
  return [
    { type: 'user', uid: input.userId },
    { type: 'organization', uid: input.organizationId },
  ]
}
