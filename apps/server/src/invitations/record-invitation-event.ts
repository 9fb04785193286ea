import type { AuditEventName } from '@godwit/contract'
import { type Doer, recordAppEvent, recordEvent } from '../audit/record-event.ts'
import type { Db } from '../db/connection.ts'
import type { Deps } from '../deps.ts'

/** What happens to an invitation to an app is found in the log by that app too. */
export async function recordInvitationEvent(
  deps: Pick<Deps, 'clock'>,
  trx: Db,
  doer: Doer,
  input: {
    operation: Extract<AuditEventName, `invitation.${string}`>
    invitation: { id: number; organization_id: number; app_id: string | null; email: string; role: string }
  },
): Promise<void> {
  const { operation, invitation } = input
  const { id, organization_id: organizationId, app_id: appId, email, role } = invitation
  const details = { email, role }
  if (appId === null) {
    return await recordEvent(deps, trx, doer, {
      operation,
      organizationId,
      resources: [
        { type: 'invitation', uid: id },
        { type: 'organization', uid: organizationId },
      ],
      details,
    })
  }
  await recordAppEvent(deps, trx, doer, {
    operation,
    appId,
    resources: [
      { type: 'invitation', uid: id },
      { type: 'app', uid: appId },
    ],
    details,
  })
}
