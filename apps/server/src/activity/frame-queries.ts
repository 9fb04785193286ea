import { CompiledQuery } from 'kysely'
import type { Db } from '../db/connection.ts'
import type { SegmentBytes } from './frames.ts'

/** The number of the last frame that the writer has committed, 0 before the first. */
export async function findLastFrame(db: Db, input: { writerId: string }): Promise<number> {
  const row = await db
    .selectFrom('activity_writers')
    .select('last_frame')
    .where('id', '=', input.writerId)
    .executeTakeFirst()
  return row?.last_frame ?? 0
}

/**
 * Inserts what is new up to the writer's frame `lastFrame`, unless the last one that it has committed is not `after`: then
 * nothing is changed, and the answer is false. Segments of apps that are gone are left out. All their bytes are one
 * parameter: in an array they would be sent as hexadecimal. Waits for an attempt whose answer was lost. As text: built
 * anew each time, ten times a second, it took 2 ms of the thread that answers.
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
