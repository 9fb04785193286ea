import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  // When the first of an app's devices was first seen (Unix ms). NULL: to be found among all of them.
  await sql`alter table activity_apps add column first_ms bigint`.execute(db)
}
