import type { AuditEvent } from '@godwit/contract'
import type { Db } from '../db/connection.ts'
import { listChainEnds, listChainLinks, listOrganizationsWithoutChain, type SealedRow } from './queries.ts'
import { genesisHash, hashEvent } from './rules.ts'
import { sealEvents } from './seal-events.ts'

export type ChainProblem = { organizationId: number; seq: number | undefined; problem: string }

const batchSize = 1000

type ChainEnds = Awaited<ReturnType<typeof listChainEnds>>[number]

/**
 * Follows the chain of every organization from end to end: each event must be the text that was hashed, carry the hash of the
 * one before, and be found under what it says. A changed, removed or inserted event breaks at least one of these. The service
 * may go on meanwhile: what is recorded later is left for the next time.
 */
export async function verifyChains(db: Db): Promise<{ events: number; problems: ChainProblem[] }> {
  await sealEvents(db)
  const problems: ChainProblem[] = []
  let events = 0
  for (const ends of await listChainEnds(db, { organizationId: undefined })) {
    const verified = await verifyChain(db, ends)
    events += verified.events
    problems.push(...verified.problems)
  }
  for (const organizationId of await listOrganizationsWithoutChain(db)) {
    problems.push({ organizationId, seq: undefined, problem: 'has events that were never recorded' })
  }
  return { events, problems }
}

/** Begins again when a month was dropped on the way: its events were there at first, and then were not. */
async function verifyChain(db: Db, ends: ChainEnds): Promise<{ events: number; problems: ChainProblem[] }> {
  const verified = await followChain(db, ends)
  const [now] = await listChainEnds(db, { organizationId: ends.organization_id })
  return now === undefined || now.dropped_seq === ends.dropped_seq ? verified : await verifyChain(db, now)
}

async function followChain(db: Db, ends: ChainEnds): Promise<{ events: number; problems: ChainProblem[] }> {
  const { organization_id: organizationId, last_seq: toSeq } = ends
  const problems: ChainProblem[] = []
  const report = (seq: number | undefined, problem: string) => problems.push({ organizationId, seq, problem })
  let events = 0
  let [seq, hash] = [ends.dropped_seq, ends.dropped_hash ?? genesisHash]
  let after = { seq: Number.MIN_SAFE_INTEGER, eventTime: new Date(0) }
  for (;;) {
    const links = await listChainLinks(db, { organizationId, after, toSeq, limit: batchSize })
    for (const link of links) {
      events += 1
      for (const problem of findLinkProblems(link, { seq, hash })) report(link.seq, problem)
      // What follows is judged against what is here, so that one change is one report.
      seq = link.seq
      hash = link.hash
      after = { seq, eventTime: link.event_time }
    }
    if (links.length < batchSize) break
  }
  if (seq !== toSeq) report(seq + 1, `is missing, up to ${toSeq}`)
  else if (!hash.equals(ends.last_hash)) report(seq, 'is not the event that was last')
  if (ends.max_seq !== null && ends.max_seq > toSeq) report(ends.max_seq, `was inserted after the last one, ${toSeq}`)
  return { events, problems }
}

function findLinkProblems(link: SealedRow, before: { seq: number; hash: Buffer }): string[] {
  const problems: string[] = []
  if (link.seq !== before.seq + 1) problems.push(`follows ${before.seq}: something is missing or was inserted`)
  if (!hashEvent(link.event).equals(link.hash)) problems.push('was changed')
  const event = readEvent(link.event)
  // Whoever can write to the table can write anything.
  if (event?.unmapped?.previous_hash !== before.hash.toString('hex')) {
    problems.push('does not follow the event before it')
  }
  const agrees =
    event?.metadata?.tenant_uid === String(link.organization_id) &&
    event.unmapped?.chain_seq === String(link.seq) &&
    event.time === link.event_time.getTime() &&
    event.api?.operation === link.operation &&
    event.unmapped.app_id === (link.app_id ?? undefined) &&
    event.actor?.user?.uid === (link.actor_id ?? undefined)
  if (!agrees) problems.push('is filed under something else than it says')
  return problems
}

function readEvent(text: string): DeepPartial<AuditEvent> | undefined {
  try {
    return (JSON.parse(text) as DeepPartial<AuditEvent> | null) ?? undefined
  } catch {
    return undefined
  }
}

type DeepPartial<T> = T extends object ? { [K in keyof T]?: DeepPartial<T[K]> } : T
