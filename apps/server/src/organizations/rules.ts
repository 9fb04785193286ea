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

/** The calendar month, UTC, that an instant lies in: its first instant, and that of the next. */
export function monthOf(now: Date): { start: Date; end: Date } {
  const [year, month] = [now.getUTCFullYear(), now.getUTCMonth()]
  return { start: new Date(Date.UTC(year, month)), end: new Date(Date.UTC(year, month + 1)) }
}
