import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  // What the store names the received bytes of an unfinished blob by, in order.
  await sql`alter table blobs add column parts text[] not null default '{}'`.execute(db)
}
