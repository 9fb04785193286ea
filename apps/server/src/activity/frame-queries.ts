import { sql } from 'kysely'
import type { Db } from '../db/connection.ts'
import type { SegmentBytes } from './frames.ts'

/**
 * The number of the last frame that the writer has committed, 0 before the first. Locks the writer until the end of the
 * transaction: a frame that is sent again waits for the attempt whose answer was lost.
 */
export async function lockWriter(db: Db, input: { writerId: string }): Promise<number> {
  const row = await db
    .insertInto('activity_writers')
    .values({ id: input.writerId, last_frame: 0 })
    .onConflict((conflict) => conflict.column('id').doUpdateSet({ updated_at: sql`now()` }))
    .returning('last_frame')
    .executeTakeFirstOrThrow()
  return row.last_frame
}

/** Those of apps that are gone are left out. One parameter for all bytes: in an array they would be sent as hexadecimal. */
export async function insertSegments(
  db: Db,
  input: { writerId: string; lastFrame: number; segments: SegmentBytes[] },
): Promise<void> {
  const { writerId, lastFrame, segments } = input
  const sizes = segments.map(({ bytes }) => bytes.length)
  let next = 1
  const starts = sizes.map((size) => {
    const start = next
    next += size
    return start
  })
  await sql`
    with writer as (update activity_writers set last_frame = ${lastFrame} where id = ${writerId})
    insert into activity_segments (app_id, observations)
    select segment.app_id, substring(${Buffer.concat(segments.map(({ bytes }) => bytes))}::bytea from start for size)
    from unnest(${segments.map(({ appId }) => appId)}::text[], ${starts}::int[], ${sizes}::int[])
      with ordinality as segment (app_id, start, size, position)
    join apps on apps.id = segment.app_id
    order by position`.execute(db)
}

export async function deleteWriter(db: Db, input: { writerId: string }): Promise<void> {
  await db.deleteFrom('activity_writers').where('id', '=', input.writerId).execute()
}
