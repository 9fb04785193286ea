import type pg from 'pg'
import { findLastMigration } from '../backup/catalog.ts'
import type { Config } from '../config.ts'
import { countConnections } from '../db/connection-counts.ts'
import { findLatestMigration, isKnownMigration } from '../db/migrate.ts'
import { readRow, withClient } from './database.ts'
import { describe, type Finding } from './finding.ts'

const check = 'database'
/** `nulls not distinct` in an index came with 15. */
const oldestMajor = 15
const triedMajor = 18
const slowMs = 20
const clockWarningMs = 2000
/** One-time codes are refused then. */
const clockFailureMs = 30_000
const longTransactionMinutes = 15

type Settings = Parameters<typeof countConnections>[0] & Pick<Config, 'databaseDirectUrl'>

export async function checkDatabase(connectionString: string, settings: Settings): Promise<Finding[]> {
  try {
    return await withClient(connectionString, async (client) => {
      const findings = [await checkVersion(client), await checkEncryption(client), await checkLatency(client)]
      findings.push(
        await checkSchema(client),
        await checkConnections(client, settings),
        await checkTransactions(client),
      )
      // Otherwise each connection asks for the limit that is set.
      if (settings.databaseDirectUrl !== undefined) findings.push(await checkStatementLimit(client))
      return [...findings, await checkDatabaseClock(client)]
    })
  } catch (error) {
    const mend = 'See that PostgreSQL runs, and that host, port, user, password and database of DATABASE_URL are right.'
    return [{ check, result: 'failure', found: `PostgreSQL cannot be used: ${describe(error)}`, mend }]
  }
}

async function checkVersion(client: pg.Client): Promise<Finding> {
  const row = await readRow<{ version: string; number: string; encoding: string; is_read_only: boolean }>(
    client,
    `select current_setting('server_version') as version, current_setting('server_version_num') as number,
      current_setting('server_encoding') as encoding,
      pg_is_in_recovery() or current_setting('default_transaction_read_only')::boolean as is_read_only`,
  )
  const found = `PostgreSQL ${row.version}`
  const major = Math.floor(Number(row.number) / 10_000)
  if (major < oldestMajor) {
    return { check, result: 'failure', found, mend: `Use PostgreSQL ${oldestMajor} or newer, best ${triedMajor}.` }
  }
  if (row.encoding !== 'UTF8') {
    return {
      check,
      result: 'failure',
      found: `${found}, encoding ${row.encoding}`,
      mend: 'Create the database with encoding UTF8.',
    }
  }
  if (row.is_read_only) {
    return {
      check,
      result: 'failure',
      found: `${found} takes no writes`,
      mend: 'Let DATABASE_URL name the primary, not a replica.',
    }
  }
  if (major === triedMajor) return { check, result: 'ok', found }
  return { check, result: 'warning', found, mend: `Godwit has been tried with PostgreSQL ${triedMajor}.` }
}

async function checkEncryption(client: pg.Client): Promise<Finding> {
  const { ssl, is_local: isLocal } = await readRow<{ ssl: boolean; is_local: boolean }>(
    client,
    `select coalesce((select ssl from pg_stat_ssl where pid = pg_backend_pid()), false) as ssl,
      inet_server_addr() is null or inet_server_addr() << '127.0.0.0/8' or inet_server_addr() = '::1' as is_local`,
  )
  if (ssl) return { check, result: 'ok', found: 'the connection is encrypted' }
  if (isLocal) return { check, result: 'ok', found: 'the connection stays on this machine' }
  const mend = 'Turn TLS on in PostgreSQL and add sslmode=verify-full to DATABASE_URL.'
  return { check, result: 'warning', found: 'the connection to another machine is not encrypted', mend }
}

async function checkLatency(client: pg.Client): Promise<Finding> {
  const times: number[] = []
  for (let n = 0; n < 5; n += 1) {
    const startedAt = performance.now()
    await client.query('select')
    times.push(performance.now() - startedAt)
  }
  const medianMs = times.toSorted((a, b) => a - b)[2] ?? 0
  const found = `a statement takes ${medianMs.toFixed(1)} ms`
  if (medianMs <= slowMs) return { check, result: 'ok', found }
  return {
    check,
    result: 'warning',
    found,
    mend: 'Put the database near the server: a request takes several statements.',
  }
}

async function checkSchema(client: pg.Client): Promise<Finding> {
  const [last, latest] = [await findLastMigration(client), findLatestMigration()]
  const found = `the schema is ${last ?? 'empty'}`
  if (last === latest) return { check, result: 'ok', found }
  if (last === undefined || isKnownMigration(last)) {
    return { check, result: 'warning', found, mend: `The next start of the server brings it to ${latest}.` }
  }
  return {
    check,
    result: 'failure',
    found,
    mend: 'A newer version of Godwit has been started on it: use that, or restore a backup.',
  }
}

async function checkStatementLimit(client: pg.Client): Promise<Finding> {
  const { limit } = await readRow<{ limit: string }>(client, "select current_setting('statement_timeout') as limit")
  if (limit !== '0') return { check, result: 'ok', found: `PostgreSQL cancels statements after ${limit}` }
  const mend = "The pooler refuses limits of ours: alter role … set statement_timeout = '15s'."
  return { check, result: 'warning', found: 'PostgreSQL cancels no statement, however long it takes', mend }
}

/** Of `pg_stat_activity` an account without special rights does not see enough to count the sessions of others. */
async function checkConnections(client: pg.Client, settings: Settings): Promise<Finding> {
  const { used, free } = await readRow<{ used: string; free: string }>(
    client,
    `select sum(numbackends) as used, current_setting('max_connections')::int
      - current_setting('superuser_reserved_connections')::int
      - coalesce(current_setting('reserved_connections', true)::int, 0) - sum(numbackends) as free from pg_stat_database`,
  )
  const found = `${used} connections are open, ${free} more are possible`
  const { primary: perInstance } = countConnections(settings)
  if (Number(free) >= perInstance) return { check, result: 'ok', found }
  const mend = `Raise max_connections: with these settings an instance opens up to ${perInstance}.`
  return { check, result: 'warning', found, mend }
}

/** One that stays open keeps PostgreSQL from removing what was deleted since. */
async function checkTransactions(client: pg.Client): Promise<Finding> {
  const { rows } = await client.query<{ pid: number; name: string; minutes: number }>(
    `select pid, application_name as name, floor(extract(epoch from now() - xact_start) / 60)::int as minutes
    from pg_stat_activity where datname = current_database() and application_name <> 'godwit backup'
      and xact_start < now() - make_interval(mins => ${longTransactionMinutes}) order by xact_start`,
  )
  if (rows.length === 0) return { check, result: 'ok', found: 'no transaction has been open for long' }
  const list = rows.map(({ pid, name, minutes }) => `${pid} (${name}, ${minutes} min)`).join(', ')
  const mend = 'End them with select pg_terminate_backend(pid), unless they are known.'
  return { check, result: 'warning', found: `transactions stay open: ${list}`, mend }
}

async function checkDatabaseClock(client: pg.Client): Promise<Finding> {
  const before = Date.now()
  const { ms } = await readRow<{ ms: string }>(client, 'select extract(epoch from clock_timestamp()) * 1000 as ms')
  return compareClocks('that of the database', Number(ms), (before + Date.now()) / 2)
}

/** `toleranceMs`: how exactly the other clock is known. */
export function compareClocks(name: string, theirMs: number, ourMs: number, toleranceMs = 0): Finding {
  const differenceMs = Math.round(ourMs - theirMs)
  const found = `this clock is ${differenceMs} ms ahead of ${name}`
  const offMs = Math.abs(differenceMs) - toleranceMs
  if (offMs <= clockWarningMs) return { check: 'clock', result: 'ok', found }
  const result = offMs > clockFailureMs ? 'failure' : 'warning'
  return { check: 'clock', result, found, mend: 'Let both machines take their time from NTP.' }
}
