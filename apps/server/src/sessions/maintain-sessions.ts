import { deleteExpiredRecords } from '../authorization-server/records.ts'
import { deleteUsedRefreshTokens } from '../command-line-sign-in/queries.ts'
import type { Deps } from '../deps.ts'
import { dayMs } from '../time.ts'
import { deleteEndedSessions } from './queries.ts'

/** Longer than a token of a CI lives: until then its row tells that it was used already. */
const keepEndedMs = dayMs
/** For so long a stolen refresh token is still noticed by its second use. */
const keepUsedTokensMs = 30 * dayMs

/** What time alone asks for: the next signing key, and the removal of what has ended. */
export async function maintainSessions(deps: Pick<Deps, 'db' | 'clock' | 'signingKeys'>): Promise<void> {
  const now = deps.clock().getTime()
  await deps.signingKeys.rotate()
  await deleteEndedSessions(deps.db, { before: new Date(now - keepEndedMs) })
  await deleteUsedRefreshTokens(deps.db, { before: new Date(now - keepUsedTokensMs) })
  await deleteExpiredRecords(deps.db, { before: new Date(now) })
}
