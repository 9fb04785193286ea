import { CompiledQuery } from 'kysely'
import type { Db } from '../db/connection.ts'
import type { SegmentBytes } from './frames.ts'

// As text, because ten times a second they are built again on the thread that answers: as builders, 2 ms each time.

/**
 * The number of the last frame that the writer has committed, 0 before the first. Locks the writer until the end of the
 * transaction: a frame that is sent again waits for the attempt whose answer was lost.
 */
export async function lockWriter(db: Db, input: { writerId: string }): Promise<number> {
  const { rows } = await db.executeQuery<{ last_frame: number }>(
    CompiledQuery.raw(
      `insert into activity_writers (id, last_frame) values ($1, 0)
      on conflict (id) do update set updated_at = now()
      returning last_frame`,
      [input.writerId],
    ),
  )
  return rows[0]?.last_frame ?? 0
}

/**
 * Inserts what is new up to the writer's frame `lastFrame`, unless the last one that it has committed is not `after`: then
 * nothing is changed, and the answer is false. Segments of apps that are gone are left out. All their bytes are one
 * parameter: in an array they would be sent as hexadecimal.
 */
export async function insertSegments(
  db: Db,
  input: { writerId: string; after: number; lastFrame: number; segments: SegmentBytes[] },
): Promise<boolean> {
  const { writerId, after, lastFrame, segments } = input
  const sizes = segments.map(({ bytes }) => bytes.length)
  let next = 1
  const starts = sizes.map((size) => {
    const start = next
    next += size
    return start
  })
  const appIds = segments.map(({ appId }) => appId)
  const bytes = Buffer.concat(segments.map((segment) => segment.bytes))
  const { rows } = await db.executeQuery(
    CompiledQuery.raw(
      `with writer as (
        insert into activity_writers (id, last_frame) values ($1, $3)
        on conflict (id) do update set last_frame = excluded.last_frame, updated_at = now()
        where activity_writers.last_frame = $2
        returning id
      ), inserted as (
        insert into activity_segments (app_id, observations)
        select segment.app_id, substring($4::bytea from start for size)
        from unnest($5::text[], $6::int[], $7::int[]) with ordinality as segment (app_id, start, size, position)
        join apps on apps.id = segment.app_id
        where exists (select from writer)
        order by position
      )
      select from writer`,
      [writerId, after, lastFrame, bytes, appIds, starts, sizes],
    ),
  )
  return rows.length === 1
}

export async function deleteWriter(db: Db, input: { writerId: string }): Promise<void> {
  await db.deleteFrom('activity_writers').where('id', '=', input.writerId).execute()
}
