import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Config } from '../config.ts'
import { readRow, withClient } from './database.ts'
import type { Finding } from './finding.ts'

/** Every queue is looked at within seconds. */
const stuckMinutes = 15
const mebibyte = 1024 ** 2

/** Jobs that nobody does, or that have failed for good; what devices told and nobody has counted. */
export async function checkBacklog(connectionString: string): Promise<Finding[]> {
  return await withClient(connectionString, async (client) => {
    const { exists } = await readRow<{ exists: boolean }>(
      client,
      "select to_regclass('pgboss.job') is not null and to_regclass('public.activity_segments') is not null as exists",
    )
    if (!exists) return [{ check: 'jobs', result: 'ok', found: 'no server has been started on this database yet' }]
    const { rows } = await client.query<{ name: string; stuck: string; failed: string }>(
      `select name, count(*) filter (where state in ('created', 'retry')
          and start_after < now() - make_interval(mins => ${stuckMinutes})) as stuck,
        count(*) filter (where state = 'failed' and completed_on > now() - interval '1 day') as failed
      from pgboss.job group by name order by name`,
    )
    const { segments } = await readRow<{ segments: string }>(
      client,
      `select count(*) as segments from activity_segments where created_at < now() - make_interval(mins => ${stuckMinutes})`,
    )
    return [...judgeJobs(rows), judgeSegments(Number(segments))]
  })
}

function judgeJobs(queues: { name: string; stuck: string; failed: string }[]): Finding[] {
  const findings = queues.flatMap(({ name, stuck, failed }): Finding[] => {
    const isStuck = Number(stuck) > 0
    if (!isStuck && Number(failed) === 0) return []
    const found = isStuck
      ? `${stuck} jobs of ${name} have waited for more than ${stuckMinutes} minutes`
      : `${failed} jobs of ${name} have failed within a day, with all their tries`
    const mend = isStuck ? 'See that a server runs that does jobs.' : 'The log of the server says why.'
    return [{ check: 'jobs', result: 'warning', found, mend }]
  })
  return findings.length > 0 ? findings : [{ check: 'jobs', result: 'ok', found: 'no job is stuck or has failed' }]
}

function judgeSegments(count: number): Finding {
  if (count === 0) return { check: 'activity', result: 'ok', found: 'what devices told has been counted' }
  const found = `${count} segments of what devices told have waited for more than ${stuckMinutes} minutes`
  return {
    check: 'activity',
    result: 'warning',
    found,
    mend: 'See that a server runs that counts; its log says what keeps it.',
  }
}

/** What devices told while the database was away. It goes into the database, soon after that is back. */
export async function checkSpool({
  spoolDir,
  maxSpoolBytes,
}: Pick<Config, 'spoolDir' | 'maxSpoolBytes'>): Promise<Finding[]> {
  const check = 'spool'
  const usedBytes = await measureFiles(spoolDir)
  const found = `${Math.ceil(usedBytes / mebibyte)} of ${Math.floor(maxSpoolBytes / mebibyte)} MiB wait on disk`
  if (usedBytes < maxSpoolBytes / 10) return [{ check, result: 'ok', found }]
  const mend = 'See that the server reaches its database: what does not fit is lost.'
  return [{ check, result: usedBytes > maxSpoolBytes * 0.9 ? 'failure' : 'warning', found, mend }]
}

async function measureFiles(folder: string): Promise<number> {
  const names = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return []
    throw error
  })
  const sizes = await Promise.all(
    names.map(async (name) => (await stat(join(folder, name)).catch(() => undefined))?.size ?? 0),
  )
  return sizes.reduce((sum, size) => sum + size, 0)
}
