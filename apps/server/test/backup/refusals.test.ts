import { createHash, randomBytes } from 'node:crypto'
import { cp, mkdir, mkdtemp, readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import pino from 'pino'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { hasTables } from '../../src/backup/catalog.ts'
import { makeBackup } from '../../src/backup/make-backup.ts'
import { restoreBackup } from '../../src/backup/restore-backup.ts'
import { openSession } from '../../src/backup/session.ts'
import { verifyBackup } from '../../src/backup/verify-backup.ts'
import { createDiskBlobStore } from '../../src/blobs/disk-blob-store.ts'
import { createDb, createPool } from '../../src/db/connection.ts'
import { migrateTo } from '../../src/db/migrate.ts'
import { sweepBlobs } from '../../src/transfers/sweep-blobs.ts'
import {
  createTestApp,
  createTestRelease,
  uploadTestPatchArtifact,
  uploadTestReleaseArtifact,
} from '../support/publishing.ts'
import { createEmptyDatabase, type TestDatabase } from '../support/test-database.ts'
import { createTestService, type TestService } from '../support/test-service.ts'

const log = pino({ level: 'silent' })

let service: TestService
let root: string
let whole: string
let folder: string
let blobPath: string
let target: TestDatabase
/** A copy of the backup, to be damaged. */
let dir: string

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'godwit-backup-'))
  service = await createTestService()
  const { api, organizationId } = await service.createAccount()
  const appId = await createTestApp({ api, organizationId })
  const releaseId = await createTestRelease(api, appId)
  await uploadTestReleaseArtifact(api, { appId, releaseId }, { bytes: randomBytes(1000) })
  whole = join(root, 'whole')
  folder = (await backUp(whole)).manifest.folder
  const files = await readdir(join(whole, 'blobs'), { recursive: true, withFileTypes: true })
  blobPath =
    files
      .filter((entry) => entry.isFile() && !entry.name.startsWith('.'))
      .map(({ parentPath, name }) => join(parentPath, name))[0] ?? ''
  target = await createEmptyDatabase()
})
beforeEach(async () => {
  dir = join(await mkdtemp(join(root, 'copy-')), 'backup')
  await cp(whole, dir, { recursive: true })
})
afterAll(async () => {
  await target.drop()
  await service.stop()
  await rm(root, { recursive: true, force: true })
})

async function backUp(to: string, source: Partial<Parameters<typeof makeBackup>[0]> = {}) {
  const { connectionString, deps } = service
  return await makeBackup({ connectionString, blobs: deps.blobs, clock: () => new Date(), ...source }, to)
}

async function restoreTo(database: TestDatabase, storeDir: string) {
  const blobs = await createDiskBlobStore({ dir: storeDir })
  return await restoreBackup({ connectionString: database.connectionString, blobs, log }, dir)
}

async function isEmpty(database: TestDatabase): Promise<boolean> {
  const session = await openSession(database.connectionString)
  const has = await hasTables(session.client)
  await session.end()
  return !has
}

async function damage(path: string): Promise<void> {
  const bytes = await readFile(path)
  const middle = Math.floor(bytes.length / 2)
  bytes.writeUInt8(bytes.readUInt8(middle) ^ 1, middle)
  await writeFile(path, bytes)
}

const here = (path: string) => path.replace(whole, dir)

/** Says something that the backup does not hold, under the right hash. */
async function editManifest(change: Record<string, unknown>): Promise<void> {
  const path = join(dir, 'manifest.json')
  const { manifest } = JSON.parse(await readFile(path, 'utf8'))
  const edited = { ...manifest, ...change }
  const sha256 = createHash('sha256').update(JSON.stringify(edited)).digest('hex')
  await writeFile(path, JSON.stringify({ sha256, manifest: edited }))
}

describe('restoring refuses, with nothing changed,', () => {
  const cases: [name: string, spoil: () => Promise<unknown>, message: () => string][] = [
    [
      'a table of which a bit has changed',
      () => damage(join(dir, folder, 'releases.tsv.zst')),
      () => `${join(dir, folder, 'releases.tsv.zst')} is damaged`,
    ],
    [
      'a table that was cut off',
      () => truncate(join(dir, folder, 'apps.tsv.zst'), 5),
      () => `${join(dir, folder, 'apps.tsv.zst')} has 5 bytes`,
    ],
    [
      'a table that is missing',
      () => rm(join(dir, folder, 'users.tsv.zst')),
      () => `${join(dir, folder, 'users.tsv.zst')} is missing`,
    ],
    [
      'a list of blobs that was cut off',
      () => truncate(join(dir, folder, 'blobs.tsv'), 0),
      () => `${join(dir, folder, 'blobs.tsv')} has 0 bytes`,
    ],
    ['a blob of which a bit has changed', () => damage(here(blobPath)), () => `${here(blobPath)} is damaged`],
    ['a blob that is missing', () => rm(here(blobPath)), () => `${here(blobPath)} is missing`],
    [
      'a manifest of which a bit has changed',
      () => damage(join(dir, 'manifest.json')),
      () => `${join(dir, 'manifest.json')} is damaged`,
    ],
    [
      'a backup that did not finish',
      () => rm(join(dir, 'manifest.json')),
      () => `${join(dir, 'manifest.json')} is missing`,
    ],
    ['a backup of a newer version', () => editManifest({ schema: '9999-later' }), () => 'newer version of Godwit'],
    [
      'a form that it does not know',
      () => editManifest({ format: 2 }),
      () => `${join(dir, 'manifest.json')} has a form`,
    ],
  ]
  it.each(cases)('%s', async (_, spoil, message) => {
    await spoil()
    await expect(restoreTo(target, join(dir, '..', 'store'))).rejects.toThrow(message())
    expect(await isEmpty(target)).toBe(true)
    const store = await createDiskBlobStore({ dir: join(dir, '..', 'store') })
    for await (const _key of store.list()) expect.unreachable()
  })

  it('a database that has tables, and a store that has other blobs', async () => {
    const { connectionString, drop } = target
    const used = { connectionString: service.connectionString, name: '', drop }
    await expect(restoreTo(used, join(dir, '..', 'store'))).rejects.toThrow('The database is not empty')
    const key = 'ff'.repeat(16)
    await mkdir(join(dir, '..', 'store', 'ff', 'ff'), { recursive: true })
    await writeFile(join(dir, '..', 'store', 'ff', 'ff', key), 'x')
    await expect(restoreTo({ ...target, connectionString }, join(dir, '..', 'store'))).rejects.toThrow(
      `The blob store is not empty: it holds ${key}`,
    )
    expect(await isEmpty(target)).toBe(true)
  })

  it('a table that has other rows than the manifest says, also when all of it was loaded', async () => {
    const { tables } = (await verifyBackup(dir)).manifest
    await editManifest({ tables: tables.map((table) => (table.name === 'users' ? { ...table, row_count: 2 } : table)) })
    const store = join(dir, '..', 'store')
    await expect(restoreTo(target, store)).rejects.toThrow('1 rows were loaded into users instead of 2')
    expect(await isEmpty(target)).toBe(true)
    // What is left of it, the blobs, does not stand in the way of another try.
    await editManifest({ tables })
    const second = await createEmptyDatabase()
    await expect(restoreTo(second, store)).resolves.toMatchObject({ manifest: { blobs: { count: 1 } }, isNew: true })
    await second.drop()
  })
})

describe('restoring again', () => {
  it('what a restore had finished that was killed before it could say so changes nothing and succeeds', async () => {
    const fresh = await createEmptyDatabase()
    const store = join(dir, '..', 'store')
    await expect(restoreTo(fresh, store)).resolves.toMatchObject({ isNew: true })
    const db = createDb(createPool(fresh.connectionString, 1))
    await db.updateTable('organizations').set({ name: 'Renamed since' }).execute()
    await expect(restoreTo(fresh, store)).resolves.toMatchObject({ isNew: false })
    const names = await db.selectFrom('organizations').select('name').distinct().execute()
    expect(names).toEqual([{ name: 'Renamed since' }])
    await db.destroy()
    await editManifest({ made_at: '2000-01-01T00:00:00.000Z' })
    await expect(restoreTo(fresh, store)).rejects.toThrow('The database is not empty')
    await fresh.drop()
  })
})

describe('a backup', () => {
  it('of an older version of the schema is restored into this one', async () => {
    const [old, fresh] = [await createEmptyDatabase(), await createEmptyDatabase()]
    const db = createDb(createPool(old.connectionString, 1))
    await migrateTo(db, { name: '0004-device-activity' })
    await db.insertInto('organizations').values({ name: 'Early', organization_type: 'team' }).execute()
    await db.destroy()
    await rm(dir, { recursive: true })
    const { manifest } = await backUp(dir, { connectionString: old.connectionString })
    expect(manifest.schema).toBe('0004-device-activity')
    await restoreTo(fresh, join(dir, '..', 'store'))
    const restored = createDb(createPool(fresh.connectionString, 1))
    expect(await restored.selectFrom('organizations').select('name').execute()).toEqual([{ name: 'Early' }])
    expect(await restored.selectFrom('release_analyses').select('release_id').execute()).toEqual([])
    await restored.destroy()
    await old.drop()
    await fresh.drop()
  })

  it('keeps the backup of before whole when it fails', async () => {
    const blobs = await createDiskBlobStore({ dir: join(root, 'empty') })
    await rm(here(blobPath))
    await expect(backUp(dir, { blobs })).rejects.toThrow(
      /^These blobs are damaged\..*\n {2}blob \w+ has no bytes instead of 1000 \(of app [\w-]+, release 1\.0\.0\+1, android aab\)$/,
    )
    await cp(blobPath, here(blobPath))
    expect((await verifyBackup(dir)).manifest.folder).toBe(folder)
    await backUp(dir)
    expect((await readdir(dir)).filter((name) => name.startsWith('database-'))).toHaveLength(1)
  })

  it('names every blob that is damaged, and the patch that it belongs to', async () => {
    const { api, organizationId } = await service.createAccount()
    const appId = await createTestApp({ api, organizationId })
    const releaseId = await createTestRelease(api, appId, '2.0.0+7')
    const { id: patchId } = await api.createPatch({ params: { appId }, body: { release_id: releaseId, metadata: {} } })
    for (const arch of ['aarch64', 'x86_64']) await uploadTestPatchArtifact(api, { appId, patchId }, { arch })
    const { blobs } = service.deps
    const changed = await createDiskBlobStore({ dir: join(root, 'changed') })
    for await (const key of blobs.list()) {
      const { sizeBytes = 0 } = (await blobs.find(key)) ?? {}
      const source = Readable.from([Buffer.alloc(sizeBytes)])
      await changed.write(key, { offset: 0, parts: [], source })
      await changed.finish(key, { sizeBytes, sha256: '', parts: [] })
    }
    const told = await backUp(dir, { blobs: changed }).catch((error) => error.message.split('\n').slice(1))
    const ofPatch = (arch: string) =>
      expect.stringMatching(
        RegExp(`^  blob \\w+ has changed.* \\(of app ${appId}, release 2\\.0\\.0\\+7, patch 1, android ${arch}\\)$`),
      )
    expect(told).toHaveLength(2)
    expect(told).toEqual(expect.arrayContaining([ofPatch('aarch64'), ofPatch('x86_64')]))
    await api.deleteApp({ params: { appId } })
    await sweepBlobs(service.deps)
  })

  it('goes into no folder that holds something else, or the backup of another installation', async () => {
    await writeFile(join(dir, 'notes.txt'), 'mine')
    await expect(backUp(dir)).rejects.toThrow('something else than a backup: notes.txt')
    await rm(join(dir, 'notes.txt'))
    await editManifest({ installation: 'another' })
    await expect(backUp(dir)).rejects.toThrow('the backup of another installation')
  })

  it('of a database on which no server was ever started is refused', async () => {
    await expect(backUp(join(root, 'none'), { connectionString: target.connectionString })).rejects.toThrow(
      'This database is empty',
    )
  })

  it('lets no sweep remove bytes that it may still have to copy', async () => {
    const { api, organizationId } = await service.createAccount()
    const appId = await createTestApp({ api, organizationId })
    const releaseId = await createTestRelease(api, appId)
    await uploadTestReleaseArtifact(api, { appId, releaseId })
    const { blobs } = service.deps
    // The snapshot is taken, and no blob has been copied yet: the app goes, and a sweep runs.
    let removed: number | undefined
    const find = async (key: string) => {
      if (removed === undefined) {
        removed = 0
        await api.deleteApp({ params: { appId } })
        removed = (await sweepBlobs(service.deps)).removed
      }
      return await blobs.find(key)
    }
    const { manifest } = await backUp(join(root, 'swept'), { blobs: { ...blobs, find } })
    expect(removed).toBe(0)
    expect(manifest.blobs.count).toBe(2)
    expect((await sweepBlobs(service.deps)).removed).toBe(1)
  })
})
