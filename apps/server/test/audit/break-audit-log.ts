import { sql } from 'kysely'
import type { Db } from '../../src/db/connection.ts'

/** From now on no event can be recorded. */
export async function breakAuditLog(db: Db): Promise<void> {
  await sql`
    create function refuse_event() returns trigger language plpgsql as $$ begin raise exception 'disk full'; end $$
  `.execute(db)
  await sql`
    create trigger refuse_event before insert on audit_outbox for each row execute function refuse_event()
  `.execute(db)
}

export async function repairAuditLog(db: Db): Promise<void> {
  await sql`drop trigger refuse_event on audit_outbox`.execute(db)
  await sql`drop function refuse_event`.execute(db)
}

const artifactTables = ['release_artifacts', 'patch_artifacts']
const appTables = ['apps', 'app_collaborators', 'channels', 'releases', 'release_platforms', 'patches']

/** All that there is of all apps. An artifact is there from the moment that its bytes are. */
export async function readAppTables(db: Db): Promise<unknown> {
  const content: unknown[] = []
  for (const table of appTables) content.push((await sql`select * from ${sql.table(table)}`.execute(db)).rows)
  for (const table of artifactTables) {
    const { rows } = await sql`select * from ${sql.table(table)} where uploaded_at is not null`.execute(db)
    content.push(rows)
  }
  return content.map((rows) => (rows as unknown[]).map((row) => JSON.stringify(row)).toSorted())
}

/** From now on every transaction that changes anything of an app fails when it commits. */
export async function breakCommits(db: Db): Promise<void> {
  await sql`
    create function refuse_commit() returns trigger language plpgsql as $$ begin raise exception 'disk full'; end $$
  `.execute(db)
  for (const table of [...appTables, ...artifactTables]) {
    await sql`
      create constraint trigger refuse_commit after insert or update or delete on ${sql.table(table)}
      deferrable initially deferred for each row execute function refuse_commit()
    `.execute(db)
  }
}

export async function repairCommits(db: Db): Promise<void> {
  await sql`drop function refuse_commit cascade`.execute(db)
}
