import { mkdtemp, readdir, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { verifyBackup } from '../../src/backup/verify-backup.ts'
import { runAdmin } from '../admin/run-admin.ts'
import { signIn } from '../sign-in/accounts.ts'
import { createBrowser } from '../support/browser.ts'
import { createTestRelease } from '../support/publishing.ts'
import { createEmptyDatabase } from '../support/test-database.ts'
import { createTestService, type TestService } from '../support/test-service.ts'
import { askProgress, putChunk } from '../transfers/http.ts'
import { downloadAll, readAnswers } from './answers.ts'
import { type BusyService, checkPatch, keepBusy, makeBusy } from './busy-service.ts'

const now = new Date()
now.setUTCMinutes(34)
let time = now

let service: TestService
let busy: BusyService
let dir: string

beforeAll(async () => {
  dir = join(await mkdtemp(join(tmpdir(), 'godwit-backup-')), 'backup')
  service = await createTestService({ clock: () => now })
  busy = await makeBusy(service, now)
})
afterAll(async () => await rm(join(dir, '..'), { recursive: true, force: true }))

async function backUp() {
  const result = await runAdmin({ DATABASE_URL: service.connectionString, GODWIT_DATA_DIR: service.dataDir }, [
    'backup',
    dir,
  ])
  expect(result).toMatchObject({ code: 0, stdout: '' })
  return Number(/, (\d+) of them new\.$/m.exec(result.stderr)?.[1])
}

/** Into a database, a store and behind a URL that are all new. */
async function restore(): Promise<TestService> {
  const database = await createEmptyDatabase()
  const dataDir = await mkdtemp(join(tmpdir(), 'godwit-restored-'))
  const environment = { DATABASE_URL: database.connectionString, GODWIT_DATA_DIR: dataDir }
  const result = await runAdmin(environment, ['restore', dir])
  expect(result).toMatchObject({ code: 0, stdout: '' })
  return await createTestService({ clock: () => time, restored: { database, dataDir } })
}

async function verifyAudit({ connectionString, dataDir }: TestService) {
  return await runAdmin({ DATABASE_URL: connectionString, GODWIT_DATA_DIR: dataDir }, ['audit', 'verify'])
}

const owner = () => ({ token: busy.owner.apiKey, params: busy.params })

describe('a backup that is made while the service is changed', () => {
  it('is of one moment: every artifact that it knows has its bytes, and the audit logs are whole', async () => {
    const load = keepBusy(service, busy, now)
    await expect.poll(async () => (await busy.owner.api.listApps()).apps.length).toBeGreaterThan(2)
    await backUp()
    expect(await load.stop()).toBeGreaterThan(3)

    const restored = await restore()
    const { rows } = await sql<{ key: string; size: number }>`
      select key, size_bytes as size from blobs join (
        select blob_key from release_artifacts where uploaded_at is not null
        union select blob_key from patch_artifacts where uploaded_at is not null) used on blob_key = key`.execute(
      restored.deps.db,
    )
    expect(rows.length).toBeGreaterThan(4)
    for (const { key, size } of rows) expect((await restored.deps.blobs.find(key))?.sizeBytes).toBe(size)
    expect(await verifyAudit(restored)).toMatchObject({ code: 0, stderr: '' })
    await restored.stop()
  })
})

describe('a service of which nothing but a backup is left', () => {
  let answers: Record<string, unknown>
  let bytes: Map<string, string>
  let check: Awaited<ReturnType<typeof checkPatch>>
  let lastReleaseId: number
  let copiedBlobs: number
  let restored: TestService

  beforeAll(async () => {
    const params = { appId: String(busy.params.appId) }
    lastReleaseId = await createTestRelease(busy.owner.api, params.appId, 'soon deleted')
    await sql`delete from releases where id = ${lastReleaseId}`.execute(service.deps.db)
    const beforeEvents = await readAnswers(service, owner())
    check = await checkPatch(service, String(busy.params.appId), 'device-1')
    bytes = await downloadAll(service, [beforeEvents, check])
    await service.deps.recorder.flush()
    // Listing links has left events in the audit log, which is read again.
    answers = { ...beforeEvents, ...(await readAnswers(service, { ...owner(), only: 'listAuditLogs' })) }
    copiedBlobs = await backUp()
    await service.stop()
    restored = await restore()
  })
  afterAll(async () => await restored.stop())

  it('gives every answer as before, behind another public URL', async () => {
    expect(Object.keys(answers).length).toBeGreaterThan(30)
    expect(answers.getVersionDistribution).toMatchObject([200, { total_devices: 110 }])
    expect(await readAnswers(restored, owner())).toEqual(answers)
  })

  it('gives the bytes of every artifact', async () => {
    expect(bytes.size).toBeGreaterThan(2)
    expect([...bytes.values()].map((hex) => hex.length)).toContain(6_000_000)
    expect(await downloadAll(restored, [answers, check])).toEqual(bytes)
  })

  it('offers devices what they were offered, and counts no device twice', async () => {
    const { appId } = busy.params
    expect(check).toMatchObject({ patch_available: true, patch: { number: 1 } })
    const answer = await checkPatch(restored, String(appId), 'device-1')
    expect(JSON.stringify(answer).replaceAll(restored.baseUrl, service.baseUrl)).toBe(JSON.stringify(check))
    expect(
      await restored.client(busy.owner.apiKey).getVersionDistribution({ params: { appId: String(appId) } }),
    ).toEqual((answers.getVersionDistribution as unknown[])[1])
  })

  it('lets people and machines in as before', async () => {
    const signedIn = createBrowser(restored.baseUrl)
    for (const [name, value] of busy.member.browser.cookies) signedIn.cookies.set(name, value)
    expect(await signedIn.get('/account')).toMatchObject({ status: 200 })
    const browser = createBrowser(restored.baseUrl)
    // A code counts once, and one has been used.
    time = new Date(now.getTime() + 60_000)
    const { location } = await signIn(busy.member, browser)
    const code = busy.showCode(time)
    expect(await browser.submit(location ?? '', '/sign-in/code', { code })).toMatchObject({ status: 303 })
    const { apps } = await restored.client(busy.serviceAccountKey).listApps()
    expect(apps.map(({ app_id: appId }) => appId)).toContain(busy.params.appId)
  })

  it('has whole audit logs, which go on', async () => {
    expect(await verifyAudit(restored)).toMatchObject({ code: 0, stderr: '' })
    await restored.client(busy.owner.apiKey).createOrganization({ body: { name: 'Later' } })
    expect(await verifyAudit(restored)).toMatchObject({ code: 0, stderr: '' })
  })

  it('starts an upload again of which half had arrived', async () => {
    const { url, bytes: whole } = busy.unfinished
    const here = url.replace(service.baseUrl, restored.baseUrl)
    expect(await askProgress(here, whole.length)).toMatchObject({ status: 308 })
    expect((await askProgress(here, whole.length)).headers.range).toBeUndefined()
    expect(await putChunk(here, whole, 0, whole.length - 1)).toMatchObject({ status: 200 })
  })

  it('gives nothing new the number of something that was deleted', async () => {
    const api = restored.client(busy.owner.apiKey)
    expect(await createTestRelease(api, String(busy.params.appId), 'next')).toBe(lastReleaseId + 1)
  })

  it('requests what was under way: the sweep, and the removal of what devices of a deleted app told', async () => {
    const { rows } = await sql<{ name: string }>`select distinct name from pgboss.job`.execute(restored.deps.db)
    expect(rows.map(({ name }) => name)).toEqual(expect.arrayContaining(['sweep-blobs', 'remove-device-events']))
  })

  it('had copied only the blobs that were new since the backup before, and keeps no others', async () => {
    expect(copiedBlobs).toBeGreaterThan(0)
    const kept = (await readdir(join(dir, 'blobs'), { recursive: true, withFileTypes: true })).filter(
      (e) => e.isFile() && !e.name.startsWith('.'),
    )
    expect(copiedBlobs).toBeLessThan(kept.length)
    const { manifest } = await verifyBackup(dir)
    expect(kept).toHaveLength(manifest.blobs.count)
    expect((await readdir(dir)).toSorted()).toEqual(['blobs', manifest.folder, 'manifest.json'])
  })

  it('was kept where nobody else can read it', async () => {
    expect((await stat(dir)).mode & 0o777).toBe(0o700)
    const { folder } = (await verifyBackup(dir)).manifest
    for (const name of await readdir(join(dir, folder))) {
      expect((await stat(join(dir, folder, name))).mode & 0o777).toBe(0o600)
    }
  })
})
