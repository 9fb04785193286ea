import { join } from 'node:path'
import { Command } from 'commander'
import { openBlobs } from '../blobs/open-blob-store.ts'
import { type Config, ConfigError, readConfig } from '../config.ts'
import { examine } from '../doctor/examine.ts'
import { describe, type Finding } from '../doctor/finding.ts'
import { connectOrStartEmbeddedPostgres } from '../embedded-postgres/connect-or-start.ts'
import { createAdminLog } from './open-admin-deps.ts'

export function doctorCommand(): Command {
  return new Command('doctor')
    .description(
      'Look whether settings, clock, disk, database, blob store, public URL, mail server and jobs are as they must be, and ' +
        'say what to mend. Exit status 1 when something fails.',
    )
    .option('--json', 'print the findings as JSON')
    .action(async (options: { json?: true }) => {
      const findings = await listFindings()
      process.stdout.write(options.json === true ? `${JSON.stringify(findings, undefined, 2)}\n` : format(findings))
      if (findings.some(({ result }) => result === 'failure')) process.exitCode = 1
    })
}

async function listFindings(): Promise<Finding[]> {
  const config = readSettings()
  if (Array.isArray(config)) return config
  const settings: Finding = { check: 'settings', result: 'ok', found: 'all of them are valid' }
  const openStore = () => openBlobs(config)
  if (config.databaseUrl !== undefined) {
    return [settings, ...(await examine({ config, connectionString: config.databaseUrl, openBlobs: openStore }))]
  }
  const database = await openEmbedded(config)
  if ('found' in database)
    return [settings, database, ...(await examine({ config, connectionString: undefined, openBlobs: openStore }))]
  try {
    return [settings, ...(await examine({ config, connectionString: database.connectionString, openBlobs: openStore }))]
  } finally {
    await database.stop()
  }
}

/** A finding for each setting that is wrong. */
function readSettings(): Config | Finding[] {
  try {
    return readConfig(process.env)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    const [, ...lines] = error.message.split('\n')
    const mend = 'The table of settings in the README says what it may be. Nothing else was looked at.'
    return lines.map((line) => ({ check: 'settings', result: 'failure', found: line.trim(), mend }))
  }
}

async function openEmbedded(config: Config) {
  try {
    return await connectOrStartEmbeddedPostgres({ dataDir: join(config.dataDir, 'postgres'), log: createAdminLog() })
  } catch (error) {
    const mend = 'See the log of PostgreSQL in the data folder; the first start of the server makes the database.'
    return { check: 'database', result: 'failure', found: describe(error), mend } satisfies Finding
  }
}

function format(findings: Finding[]): string {
  const width = Math.max(...findings.map(({ check }) => check.length))
  const lines = findings.map(({ check, result, found, mend }) => {
    const advice = mend === undefined ? '' : `\n${' '.repeat(width + 11)}${mend}`
    return `${result.padEnd(7)}  ${check.padEnd(width)}  ${found}${advice}\n`
  })
  return lines.join('')
}
