import type { EventDetails } from '../audit/record-event.ts'

/** What an event about a service account was done to. */
export function listServiceAccountResources(input: {
  organizationId: number
  serviceAccountId: number
}): EventDetails['resources'] {
  return [
    { type: 'service_account', uid: input.serviceAccountId },
    { type: 'organization', uid: input.organizationId },
  ]
}
