import { sql } from 'kysely'
import type { Db } from '../db/connection.ts'

export type JobCount = {
  queue: string
  waiting: number
  running: number
  /** Those that failed for good, for as long as they are kept. */
  failed: number
  /** How long the one has waited that could have begun first (seconds). */
  oldestWaitingSeconds: number
}

/** The jobs of all instances, by queue. pg-boss counts them itself, but only once an hour. */
export async function countJobs(db: Db, queues: readonly string[]): Promise<JobCount[]> {
  const { rows } = await sql<JobCount>`
    select name as "queue",
      count(*) filter (where state in ('created', 'retry')) as "waiting",
      count(*) filter (where state = 'active') as "running",
      count(*) filter (where state = 'failed') as "failed",
      coalesce(extract(epoch from now() - min(start_after) filter (where state in ('created', 'retry') and start_after < now())), 0)::float8
        as "oldestWaitingSeconds"
    from pgboss.job
    where state in ('created', 'retry', 'active', 'failed')
    group by name`.execute(db)
  const found = new Map(rows.map((row) => [row.queue, row]))
  return queues.map(
    (queue) => found.get(queue) ?? { queue, waiting: 0, running: 0, failed: 0, oldestWaitingSeconds: 0 },
  )
}
