import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { judgeOpenFiles } from '../../src/doctor/check-open-files.ts'
import type { Finding } from '../../src/doctor/finding.ts'
import { findFreePort } from '../../src/embedded-postgres/launch.ts'
import { runAdmin } from '../admin/run-admin.ts'
import { startMailServer } from '../support/mail-server.ts'
import { startOutage } from '../support/outage.ts'
import { createTestApp, createTestRelease, findChannelId, uploadTestPatchArtifact } from '../support/publishing.ts'
import { noS3Server, type S3Server, startS3Server } from '../support/s3-server.ts'
import { createTestService, type TestService } from '../support/test-service.ts'

const run = promisify(execFile)

let service: TestService
let root: string

beforeAll(async () => {
  service = await createTestService()
  root = await mkdtemp(join(tmpdir(), 'godwit-doctor-'))
})
afterAll(async () => {
  await service.stop()
  await rm(root, { recursive: true, force: true })
})

/** With settings under which all is well, but for these. */
async function examine(environment: Record<string, string> = {}) {
  const { code, stdout, stderr } = await runAdmin(
    {
      DATABASE_URL: service.connectionString,
      GODWIT_DATA_DIR: service.dataDir,
      GODWIT_PUBLIC_URL: service.baseUrl,
      ...environment,
    },
    ['doctor', '--json'],
  )
  const findings = JSON.parse(stdout) as Finding[]
  const failures = findings.filter(({ result }) => result === 'failure').map(({ check, found }) => `${check}: ${found}`)
  return { code, stderr, findings, failures, text: JSON.stringify(findings) }
}

const nobodyListens = async () => `127.0.0.1:${await findFreePort()}`

/** Takes connections, and never says a word. */
async function startSilentServer() {
  const server = createServer(() => undefined)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { address: `127.0.0.1:${(server.address() as AddressInfo).port}`, stop: () => server.close() }
}

describe('doctor', () => {
  it('finds nothing wrong with a server that runs, and leaves nothing behind', async () => {
    const mailServer = await startMailServer()
    const settings = { GODWIT_SMTP_URL: mailServer.smtpUrl, GODWIT_MAIL_FROM: 'godwit@example.com' }
    const { code, failures, findings, text, stderr } = await examine(settings)
    await mailServer.stop()
    expect({ code, failures, stderr }).toEqual({ code: 0, failures: [], stderr: '' })
    expect(text).toContain('is this installation')
    expect(text).toContain('the mail server lets us in')
    expect(mailServer.mails).toEqual([])
    const checks = [
      'settings',
      'data folder',
      'blobs',
      'public URL',
      'devices',
      'clock',
      'mail',
      'open files',
      'spool',
      'database',
      'jobs',
      'activity',
    ]
    expect(new Set(findings.map(({ check }) => check))).toEqual(new Set(checks))
    for await (const key of service.deps.blobs.list()) expect.unreachable(key)
  })

  it('names every setting that is wrong, at once', async () => {
    const { code, failures } = await examine({ PORT: 'x', GODWIT_RATE_LIMIT: 'fast', DATABASE_URL: 'mysql://x' })
    expect(code).toBe(1)
    for (const name of ['PORT', 'GODWIT_RATE_LIMIT', 'DATABASE_URL']) {
      expect(failures).toContainEqual(expect.stringMatching(`^settings: ${name}: `))
    }
  })

  it('finds that PostgreSQL does not run, or takes no connections, and looks at the rest all the same', async () => {
    const { code, failures, text } = await examine({ DATABASE_URL: `postgres://x:y@${await nobodyListens()}/z` })
    expect(code).toBe(1)
    expect(failures).toContainEqual(expect.stringMatching(/^database: PostgreSQL cannot be used: .*ECONNREFUSED/))
    expect(text).toContain('a blob was written')
    const outage = await startOutage(service)
    const { failures: duringOutage } = await examine()
    await outage.end()
    expect(duringOutage).toContainEqual(expect.stringMatching('^database: .* is not currently accepting connections'))
  })

  it('finds that PostgreSQL has no room for the connections that the settings allow', async () => {
    const { text } = await examine({ GODWIT_DATABASE_CONNECTIONS: '500', GODWIT_WORKERS: '2' })
    expect(text).toContain('with these settings an instance opens up to 1024')
  })

  it('finds that the password of the database is wrong', async () => {
    const url = new URL(service.connectionString)
    url.password = 'wrong'
    const { failures } = await examine({ DATABASE_URL: url.href })
    expect(failures).toContainEqual(expect.stringMatching('^database: .*password authentication failed'))
  })

  it('ends soon when nothing answers: neither database nor public URL nor mail server', async () => {
    const silent = await startSilentServer()
    const startedAt = performance.now()
    const { failures } = await examine({
      DATABASE_URL: `postgres://x:y@${silent.address}/z`,
      GODWIT_PUBLIC_URL: `http://${silent.address}`,
      GODWIT_SMTP_URL: `smtp://${silent.address}`,
      GODWIT_MAIL_FROM: 'godwit@example.com',
    })
    expect(performance.now() - startedAt).toBeLessThan(20_000)
    silent.stop()
    expect(failures.map((failure) => failure.split(':', 1)[0])).toEqual(
      expect.arrayContaining(['database', 'public URL', 'mail']),
    )
  })

  it('finds that the data folder and the blobs cannot be written', async () => {
    const file = join(root, 'file')
    await writeFile(file, '')
    const { failures } = await examine({ GODWIT_DATA_DIR: join(file, 'data') })
    expect(failures).toContainEqual(expect.stringMatching(/^data folder: .* cannot be written: ENOTDIR/))
    expect(failures).toContainEqual(expect.stringMatching('^blobs: the blob store cannot be used: ENOTDIR'))
    // Not even root may write there.
    const { failures: onReadOnly } = await examine({ GODWIT_DATA_DIR: '/sys' })
    expect(onReadOnly).toContainEqual(expect.stringMatching(/^data folder: \/sys cannot be written: E/))
  })

  it('finds that the disk is full', async ({ skip }) => {
    const folder = await mkdtemp(join(root, 'full-'))
    const mounted = await run('mount', ['-t', 'tmpfs', '-o', 'size=512k', 'tmpfs', folder]).catch(() => undefined)
    if (mounted === undefined) return skip('mounting a small file system takes root')
    try {
      const { failures } = await examine({ GODWIT_DATA_DIR: folder })
      expect(failures).toContainEqual(expect.stringMatching(/^data folder: .*ENOSPC/))
    } finally {
      await run('umount', [folder])
    }
  })

  it('finds that the public URL leads nowhere, to something else, or to another installation', async () => {
    const { failures: nowhere } = await examine({ GODWIT_PUBLIC_URL: `http://${await nobodyListens()}` })
    expect(nowhere).toContainEqual(expect.stringMatching(/^public URL: .* cannot be reached from here: .*ECONNREFUSED/))
    const other = await createTestService()
    const { failures: elsewhere } = await examine({ GODWIT_PUBLIC_URL: other.baseUrl })
    await other.stop()
    expect(elsewhere).toEqual([expect.stringMatching(/^public URL: .* is another installation of Godwit/)])
  })

  it('finds that devices are not told what the database says, and counts no device by asking', async () => {
    const other = await createTestService()
    const settings = {
      DATABASE_URL: other.connectionString,
      GODWIT_DATA_DIR: other.dataDir,
      GODWIT_PUBLIC_URL: other.baseUrl,
    }
    const owner = await other.createAccount()
    const appId = await createTestApp(owner)
    const releaseId = await createTestRelease(owner.api, appId)
    const { id: patchId } = await owner.api.createPatch({ params: { appId }, body: { release_id: releaseId } })
    await uploadTestPatchArtifact(owner.api, { appId, patchId })
    const channelId = await findChannelId(owner.api, appId)
    await owner.api.promotePatch({ params: { appId }, body: { patch_id: patchId, channel_id: channelId } })
    const { findings, failures } = await examine(settings)
    expect(failures).toEqual([])
    expect(findings).toContainEqual(
      expect.objectContaining({ check: 'devices', found: '1 of 1 apps offer devices what the database says' }),
    )
    // A change of which no instance hears.
    await other.deps.db.updateTable('patches').set({ is_rolled_back: true }).where('id', '=', patchId).execute()
    const { failures: afterwards } = await examine(settings)
    expect(afterwards).toEqual([`devices: 0 of 1 apps offer devices what the database says, not ${appId}`])
    expect((await owner.api.getVersionDistribution({ params: { appId } })).total_devices).toBe(0)
    await other.stop()
  })

  it('finds that nothing bounds statements behind a pooler', async () => {
    const { text } = await examine({ DATABASE_DIRECT_URL: service.connectionString })
    expect(text).toContain('PostgreSQL cancels no statement, however long it takes')
    const url = new URL(service.connectionString)
    url.searchParams.set('options', '-c statement_timeout=15s')
    const limited = await examine({ DATABASE_URL: url.href, DATABASE_DIRECT_URL: url.href })
    expect(limited.text).toContain('PostgreSQL cancels statements after 15s')
  })

  it('finds that the mail server is away', async () => {
    const settings = { GODWIT_SMTP_URL: `smtp://${await nobodyListens()}`, GODWIT_MAIL_FROM: 'godwit@example.com' }
    expect((await examine(settings)).failures).toEqual([expect.stringMatching(/^mail: .*ECONNREFUSED/)])
  })

  it('finds jobs that nobody does, what nobody counts, and a schema of a newer version', async () => {
    const { db, jobs } = service.deps
    await jobs.requestBlobSweep(db)
    await sql`update pgboss.job set start_after = now() - interval '1 hour'`.execute(db)
    await sql`insert into activity_segments (app_id, observations, created_at)
      values ('a', '', now() - interval '1 hour')`.execute(db)
    await sql`insert into kysely_migration (name, timestamp) values ('9999-later', '')`.execute(db)
    const { failures, findings } = await examine()
    await sql`delete from kysely_migration where name = '9999-later'`.execute(db)
    await sql`delete from activity_segments`.execute(db)
    expect(failures).toEqual(['database: the schema is 9999-later'])
    const warnings = findings.filter(({ result }) => result === 'warning').map(({ found }) => found)
    expect(warnings).toContainEqual(expect.stringMatching('1 jobs of sweep-blobs have waited'))
    expect(warnings).toContainEqual(expect.stringMatching('1 segments of what devices told have waited'))
  })
})

it('doctor warns when too few files may be open for the connections', () => {
  expect(judgeOpenFiles(16_384, 65_536)).toMatchObject({ result: 'ok' })
  expect(judgeOpenFiles(16_384, 4096)).toMatchObject({
    result: 'warning',
    found: 'a process may have 4096 files open, enough for 3584 of 16384 connections',
    mend: expect.stringContaining('GODWIT_MAX_CONNECTIONS'),
  })
})

describe.skipIf(noS3Server !== undefined)('doctor on a bucket', () => {
  let s3: S3Server
  beforeAll(async () => {
    s3 = await startS3Server()
  })
  afterAll(async () => await s3.remove())

  it('finds nothing wrong, wrong credentials, and a server that is gone', async () => {
    const settings = { GODWIT_BLOBS: s3.newBlobsSetting(), ...s3.credentials }
    const { failures, text } = await examine(settings)
    expect(failures).toEqual([])
    expect(text).toContain('a blob was written')
    const { failures: refused } = await examine({ ...settings, AWS_SECRET_ACCESS_KEY: 'wrong' })
    expect(refused).toContainEqual(expect.stringMatching('^blobs: '))
    await s3.kill()
    expect((await examine(settings)).failures).toContainEqual(expect.stringMatching('^blobs: '))
  })
})
