import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { runAdmin } from '../admin/run-admin.ts'
import { createTestRelease, uploadTestReleaseArtifact } from '../support/publishing.ts'
import { noS3Server, startS3Server } from '../support/s3-server.ts'
import { createServerProcess, type ServerProcess } from '../support/server-process.ts'
import { createEmptyDatabase, type TestDatabase } from '../support/test-database.ts'

let root: string
let embedded: ServerProcess
let database: TestDatabase

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'godwit-move-'))
  database = await createEmptyDatabase()
  embedded = await createServerProcess()
  await embedded.start()
})
afterAll(async () => {
  await embedded.remove()
  await database.drop()
  await rm(root, { recursive: true, force: true })
})

async function publish(server: ServerProcess, version: string) {
  const { apps } = await server.api.listApps()
  const [organization] = (await server.api.listOrganizations()).organizations
  const body = { display_name: 'Atlas', organization_id: organization?.organization.id ?? 0 }
  const appId = apps[0]?.app_id ?? (await server.api.createApp({ body })).id
  const releaseId = await createTestRelease(server.api, appId, version)
  const { bytes } = await uploadTestReleaseArtifact(server.api, { appId, releaseId }, { bytes: randomBytes(200_000) })
  return { appId, releaseId, bytes }
}

async function download(server: ServerProcess, params: { appId: string; releaseId: number }): Promise<Buffer> {
  const { artifacts } = await server.api.listReleaseArtifacts({ params })
  const response = await fetch(artifacts[0]?.url ?? '')
  return Buffer.from(await response.arrayBuffer())
}

describe('moving from the embedded PostgreSQL to another', () => {
  it('keeps everything, and stops the server only for what is new since the first backup', async () => {
    const from = { GODWIT_DATA_DIR: embedded.dataDir }
    const dir = join(root, 'backup')
    const first = await publish(embedded, '1.0.0')
    expect(await runAdmin(from, ['backup', dir])).toMatchObject({ code: 0 })
    const second = await publish(embedded, '2.0.0')
    expect((await runAdmin({ ...from, GODWIT_DATA_DIR: embedded.dataDir }, ['restore', dir])).stderr).toMatch(
      /^error: Another Godwit process is using the embedded database/,
    )
    embedded.signal('SIGTERM')
    await embedded.exited()
    expect((await runAdmin(from, ['backup', dir])).stderr).toMatch(/2 blobs \(400000 bytes\), 1 of them new/)

    const settings = { DATABASE_URL: database.connectionString, GODWIT_DATA_DIR: join(root, 'data') }
    expect(await runAdmin(settings, ['restore', dir])).toMatchObject({ code: 0 })
    const moved = await createServerProcess(settings)
    await moved.start()
    for (const { bytes, ...params } of [first, second]) expect(await download(moved, params)).toEqual(bytes)
    await publish(moved, '3.0.0')
    expect(await runAdmin(settings, ['audit', 'verify'])).toMatchObject({ code: 0, stderr: '' })
    await moved.remove()
  })

  it.skipIf(noS3Server !== undefined)('takes the artifacts into a bucket, and out of it again', async () => {
    const [inBucket, onDisk] = [await createEmptyDatabase(), await createEmptyDatabase()]
    const s3 = await startS3Server()
    const bucket = { GODWIT_BLOBS: s3.newBlobsSetting(), ...s3.credentials, GODWIT_DATA_DIR: join(root, 'bucket-data') }
    const settings = { ...bucket, DATABASE_URL: inBucket.connectionString }
    expect(await runAdmin(settings, ['restore', join(root, 'backup')])).toMatchObject({ code: 0 })
    expect(await s3.listObjects()).toHaveLength(2)
    const again = join(root, 'out-of-the-bucket')
    expect((await runAdmin(settings, ['backup', again])).stderr).toMatch(/2 blobs \(400000 bytes\), 2 of them new/)
    const disk = { DATABASE_URL: onDisk.connectionString, GODWIT_DATA_DIR: join(root, 'disk-data') }
    expect(await runAdmin(disk, ['restore', again])).toMatchObject({ code: 0 })
    await s3.remove()
    await inBucket.drop()
    await onDisk.drop()
  })
})
