import { sql } from 'kysely'
import type { Db } from './connection.ts'

/**
 * The schema as text, the same for the same schema: tables with their columns, constraints and indexes. Partitions are left
 * out: they come and go with the months. The embedded PostgreSQL brings no pg_dump, so the catalog is asked directly.
 */
export async function dumpSchema(db: Db): Promise<string> {
  const { rows: tables } = await sql<{ name: string; partitioning: string | null }>`
    select relname as name, pg_get_partkeydef(oid) as partitioning from pg_class
    where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition
      and relname not like 'kysely_%'
    order by relname
  `.execute(db)
  const parts: string[] = []
  for (const table of tables) parts.push(await dumpTable(db, table))
  return `-- Made by \`npm run schema\` from the migrations; not to be edited.\n\n${parts.join('\n')}`
}

async function dumpTable(
  db: Db,
  { name: table, partitioning }: { name: string; partitioning: string | null },
): Promise<string> {
  const columns = await sql<{ line: string }>`
    select format('%I %s', attname, format_type(atttypid, atttypmod))
      || case when attidentity = 'a' then ' generated always as identity' else '' end
      || case when attnotnull then ' not null' else '' end
      || coalesce(' default ' || pg_get_expr(adbin, adrelid), '') as line
    from pg_attribute left join pg_attrdef on adrelid = attrelid and adnum = attnum
    where attrelid = ${table}::regclass and attnum > 0 and not attisdropped
    order by attnum
  `.execute(db)
  const constraints = await sql<{ line: string }>`
    select format('constraint %I %s', conname, pg_get_constraintdef(oid)) as line
    from pg_constraint where conrelid = ${table}::regclass and contype <> 'n' order by contype, conname
  `.execute(db)
  const indexes = await sql<{ line: string }>`
    select replace(pg_get_indexdef(indexrelid), ' ON ONLY ', ' ON ') as line
    from pg_index where indrelid = ${table}::regclass
      and not exists (select from pg_constraint where conindid = indexrelid and contype in ('p', 'u'))
    order by 1
  `.execute(db)
  const body = [...columns.rows, ...constraints.rows].map(({ line }) => `  ${line}`).join(',\n')
  const by = partitioning === null ? '' : ` partition by ${partitioning}`
  return `create table ${table} (\n${body}\n)${by};\n${indexes.rows.map(({ line }) => `${line};\n`).join('')}`
}
