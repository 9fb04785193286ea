import { sql } from 'kysely'
import type pg from 'pg'
import type { Db } from '../db/connection.ts'

export type CatalogTable = {
  name: string
  columns: string[]
  partitions: string[]
  identities: { column: string; last_value: string | null }[]
}

/** Tables of the schema `public` that belong to nobody else: not to an extension, not to the migrations. */
const ownTables = `
  pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition
    and not exists (select from pg_depend where objid = pg_class.oid and deptype = 'e')`

/** In the order of their names. Identity columns tell how far they have come now, not in the snapshot. */
export async function listTables(client: pg.Client): Promise<CatalogTable[]> {
  const { rows } = await client.query<CatalogTable>(`
    select relname as name,
      (select json_agg(attname order by attnum) from pg_attribute
        where attrelid = pg_class.oid and attnum > 0 and not attisdropped and attgenerated = '') as columns,
      (select coalesce(json_agg(child.relname order by child.relname), '[]') from pg_inherits
        join pg_class child on child.oid = inhrelid where inhparent = pg_class.oid) as partitions,
      (select coalesce(json_agg(json_build_object('column', attname, 'last_value',
          pg_sequence_last_value(pg_get_serial_sequence(format('%I', pg_class.relname), attname)::regclass)::text)), '[]')
        from pg_attribute where attrelid = pg_class.oid and attidentity <> '' and not attisdropped) as identities
    from ${ownTables} and relname not like 'kysely\\_%' order by relname`)
  return rows
}

export async function hasTables(client: pg.Client): Promise<boolean> {
  const { rows } = await client.query<{ exists: boolean }>(`select exists (select from ${ownTables}) as exists`)
  return rows[0]?.exists === true
}

/** Which table refers to which. */
export async function listReferences(client: pg.Client): Promise<{ from: string; to: string }[]> {
  const { rows } = await client.query<{ from: string; to: string }>(`
    select distinct child.relname as "from", parent.relname as "to" from pg_constraint
    join pg_class child on child.oid = conrelid join pg_class parent on parent.oid = confrelid
    where contype = 'f' and child.relnamespace = 'public'::regnamespace and child.oid <> parent.oid`)
  return rows
}

export async function findServerVersion(client: pg.Client): Promise<string> {
  const { rows } = await client.query<{ server_version: string }>('show server_version')
  return rows[0]?.server_version ?? 'unknown'
}

/** Which backup the database was restored from, as `markOrigin` has noted it; null when from none. */
export async function findOrigin(client: pg.Client): Promise<string | null> {
  const { rows } = await client.query<{ origin: string | null }>(
    "select obj_description(to_regclass('public.kysely_migration'), 'pg_class') as origin",
  )
  return rows[0]?.origin ?? null
}

/** In the transaction that fills the database, so that it is there when all else is. */
export async function markOrigin(db: Db, origin: string): Promise<void> {
  await sql`comment on table kysely_migration is ${sql.lit(origin)}`.execute(db)
}

/** undefined in a database that no Godwit has ever opened. */
export async function findLastMigration(client: pg.Client): Promise<string | undefined> {
  const { rows: tables } = await client.query<{ exists: boolean }>(
    "select to_regclass('public.kysely_migration') is not null as exists",
  )
  if (tables[0]?.exists !== true) return undefined
  const { rows } = await client.query<{ name: string }>('select name from kysely_migration order by name desc limit 1')
  return rows[0]?.name
}
