import type pg from 'pg'
import { formatClientKey } from '../../apps/server/src/activity/client-key.ts'
import { decodeSegment, keyOffsetOf } from '../../apps/server/src/activity/segment.ts'

/** The devices that are known, whether what was recorded of them is compacted or not. */
export async function listClients(client: pg.Client): Promise<Set<string>> {
  const compacted = await client.query<{ client: string }>('select client::text from activity_devices')
  const segments = await client.query<{ observations: Buffer }>('select observations from activity_segments')
  const known = new Set(compacted.rows.map((row) => row.client))
  for (const { observations } of segments.rows) {
    const segment = decodeSegment(observations)
    for (let index = 0; index < segment.count; index += 1) known.add(formatClientKey(segment.words, keyOffsetOf(index)))
  }
  return known
}
