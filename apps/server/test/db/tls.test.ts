import { chown, mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pino from 'pino'
import { generate } from 'selfsigned'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { readConfig } from '../../src/config.ts'
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../src/embedded-postgres/index.ts'
import { findFreePort } from '../../src/embedded-postgres/launch.ts'
import { openService } from '../../src/open-service.ts'
import { describeFailure } from '../../src/welcome.ts'
import { queryValue } from '../support/replicated-postgres.ts'

const log = pino({ level: 'silent' })
const authority = { name: 'basicConstraints', cA: true, critical: true } as const
const signing = { name: 'keyUsage', keyCertSign: true, critical: true } as const

let dir: string
let postgres: EmbeddedPostgres

/** A PostgreSQL with TLS on, whose certificate for `localhost` an authority of our own has signed. */
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'godwit-tls-'))
  const options = { dataDir: join(dir, 'postgres'), log, durable: false }
  await (await startEmbeddedPostgres(options)).stop()
  const trusted = await createAuthority('trusted.crt')
  await createAuthority('other.crt')
  const server = await generate([{ name: 'commonName', value: 'localhost' }], {
    algorithm: 'sha256',
    ca: { key: trusted.private, cert: trusted.cert },
    extensions: [{ name: 'subjectAltName', altNames: [{ type: 2, value: 'localhost' }] }],
  })
  const cluster = join(options.dataDir, 'cluster')
  const { uid, gid } = await stat(cluster)
  for (const [name, content] of [
    ['server.crt', server.cert],
    ['server.key', server.private],
    ['postgresql.auto.conf', 'ssl = on\n'],
  ] as const) {
    await writeFile(join(cluster, name), content, { mode: 0o600 })
    await chown(join(cluster, name), uid, gid)
  }
  postgres = await startEmbeddedPostgres(options)
}, 60_000)
afterAll(async () => {
  await postgres?.stop()
  await rm(dir, { recursive: true, force: true })
})

async function createAuthority(file: string) {
  const made = await generate([{ name: 'commonName', value: file }], {
    algorithm: 'sha256',
    extensions: [authority, signing],
  })
  await writeFile(join(dir, file), made.cert)
  return made
}

/** DATABASE_URL as an operator writes it. */
function buildUrl(parameters: Record<string, string>, hostname = 'localhost', connectionString?: string): string {
  const url = new URL(connectionString ?? postgres.connectionString)
  url.hostname = hostname
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value)
  return url.href
}

const trustedBy = (file: string) => ({ sslmode: 'verify-full', sslrootcert: join(dir, file) })

/** How the start of a service ends; `look` while it serves. */
async function start(databaseUrl: string, look = async () => {}): Promise<string> {
  const dataDir = await mkdtemp(join(dir, 'data-'))
  const port = String(await findFreePort())
  const config = readConfig({ DATABASE_URL: databaseUrl, HOST: '127.0.0.1', PORT: port, GODWIT_DATA_DIR: dataDir })
  const { databaseUrl: connectionString = '' } = config
  const signal = AbortSignal.timeout(20_000)
  try {
    const service = await openService({ config, log, connectionString, signal })
    await look().finally(service.close)
    return 'served'
  } catch (error) {
    return describeFailure(error)
  }
}

describe('a database with TLS', () => {
  it('serves over verified connections, all of which are encrypted', async () => {
    const url = buildUrl(trustedBy('trusted.crt'))
    const countConnections = (where: string) =>
      queryValue(
        postgres.connectionString,
        `select count(*)::int from pg_stat_ssl join pg_stat_activity using (pid)
        where backend_type = 'client backend' and pid <> pg_backend_pid() and ${where}`,
      )
    const look = async () => {
      // Those of the pools, the listener, the watch over the database, and the thread that counts devices.
      await expect.poll(() => countConnections('ssl')).toBeGreaterThanOrEqual(4)
      expect(await countConnections('not ssl')).toBe(0)
    }
    expect(await start(url, look)).toBe('served')
  })

  it('is encrypted, and not verified, with sslmode=require', async () => {
    const { databaseUrl = '' } = readConfig({ DATABASE_URL: buildUrl({ sslmode: 'require' }, '127.0.0.1') })
    expect(await queryValue(databaseUrl, 'select ssl from pg_stat_ssl where pid = pg_backend_pid()')).toBe(true)
  })

  it('ends the start when another authority than the trusted one has signed its certificate', async () => {
    const reason =
      /^DATABASE_URL cannot be used: (unable to verify the first certificate|self-signed certificate|unable to get local issuer)/
    expect(await start(buildUrl(trustedBy('other.crt')))).toMatch(reason)
    expect(await start(buildUrl({ sslmode: 'verify-full' }))).toMatch(reason)
  })

  it('ends the start when its certificate is for another host', async () => {
    expect(await start(buildUrl(trustedBy('trusted.crt'), '127.0.0.1'))).toContain(
      "DATABASE_URL cannot be used: Hostname/IP does not match certificate's altnames",
    )
  })

  it('ends the start when the file of the authority is missing', async () => {
    expect(await start(buildUrl(trustedBy('nowhere.crt')))).toMatch(/ENOENT.*nowhere\.crt/)
  })
})

describe('a database without TLS', () => {
  it('ends the start when TLS is required', async () => {
    const url = buildUrl({ sslmode: 'require' }, '127.0.0.1', inject('postgresUrl'))
    expect(await start(url)).toContain('does not support SSL')
  })
})
