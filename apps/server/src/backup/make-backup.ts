import { chmod, mkdir, readdir, rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type pg from 'pg'
import type { BlobStore } from '../blobs/blob-store.ts'
import { copyBlob, DamagedBlobError, forEachBlob } from '../blobs/copy-blob.ts'
import { createDiskBlobStore } from '../blobs/disk-blob-store.ts'
import { findOrCreateSecret } from '../server-secrets.ts'
import { syncFolder } from '../sync-folder.ts'
import { holdBackupLock } from './backup-lock.ts'
import { blobListName, finishedBlobs, listOthers, readBlobList } from './blob-list.ts'
import { describeOwner } from './blob-owners.ts'
import { findLastMigration, findServerVersion, listTables } from './catalog.ts'
import { copyOut, selectAll } from './copy-table.ts'
import { privateFolderMode } from './files.ts'
import { type BackupTable, createManifest, findManifest, type Manifest, writeManifest } from './manifest.ts'
import { listForeignEntries, listProblems } from './rules.ts'
import { allowLongStatements, openSession } from './session.ts'

export type BackupSource = { connectionString: string; blobs: BlobStore; clock: () => Date }

export type BackupSummary = { manifest: Manifest; copiedBlobs: number }

/**
 * Writes what the database and the blobs are at one moment, while the service runs. Only the manifest, written last, makes
 * the new files count; until then the folder holds the backup of before, whole.
 */
export async function makeBackup(source: BackupSource, folder: string): Promise<BackupSummary> {
  const dir = resolve(folder)
  const holder = await openSession(source.connectionString)
  try {
    if ((await findLastMigration(holder.client)) === undefined) {
      throw new Error('This database is empty: no Godwit has been started on it.')
    }
    const installation = (await findOrCreateSecret(holder.db, { name: 'installation' })).toString('hex')
    await prepareFolder(dir, installation)
    await holdBackupLock(holder.client)
    const database = await copyDatabase(source, dir)
    const manifest = createManifest({ installation, ...database })
    const { store, copiedBlobs } = await copyBlobs({ client: holder.client, blobs: source.blobs }, dir, manifest)
    await syncFolder(dir)
    // The lock was lost with its connection: what was removed since is missing.
    await holder.client.query('select')
    await writeManifest(dir, manifest)
    await removeOld(dir, manifest, store)
    return { manifest, copiedBlobs }
  } finally {
    await holder.end()
  }
}

async function prepareFolder(dir: string, installation: string): Promise<void> {
  await mkdir(dir, { recursive: true, mode: privateFolderMode })
  const previous = await findManifest(dir)
  if (previous !== undefined && previous.installation !== installation) {
    throw new Error(`${dir} holds the backup of another installation. Give this one a folder of its own.`)
  }
  const foreign = listForeignEntries(await readdir(dir))
  if (foreign.length > 0) throw new Error(`${dir} holds something else than a backup: ${foreign.join(', ')}`)
  await chmod(dir, privateFolderMode)
}

/** Closes the snapshot before the blobs are copied: it would keep PostgreSQL from tidying up for as long as that takes. */
async function copyDatabase({ connectionString, clock }: BackupSource, dir: string) {
  const session = await openSession(connectionString)
  try {
    const { client } = session
    await client.query('begin isolation level repeatable read read only')
    await allowLongStatements(client)
    const schema = (await findLastMigration(client)) ?? ''
    const madeAt = clock()
    const folder = `database-${madeAt.toISOString().toLowerCase().replaceAll(/[-:.]/g, '')}`
    await mkdir(join(dir, folder), { mode: privateFolderMode })
    const tables = await copyTables(client, join(dir, folder))
    const blobs = await copyBlobList(client, join(dir, folder))
    await client.query('commit')
    await syncFolder(join(dir, folder))
    const version = await findServerVersion(client)
    return { made_at: madeAt.toISOString(), postgres_version: version, schema, folder, tables, blobs }
  } finally {
    await session.end()
  }
}

async function copyTables(client: pg.Client, folder: string): Promise<BackupTable[]> {
  const copied: BackupTable[] = []
  for (const table of await listTables(client)) {
    const path = join(folder, `${table.name}.tsv.zst`)
    const { file, rowCount } = await copyOut(client, { query: selectAll(table), path, isCompressed: true })
    copied.push({ ...table, row_count: rowCount, file })
  }
  return copied
}

async function copyBlobList(client: pg.Client, folder: string): Promise<Manifest['blobs']> {
  const path = join(folder, blobListName)
  const { file, rowCount } = await copyOut(client, { query: finishedBlobs, path, isCompressed: false })
  let sizeBytes = 0
  for await (const blob of readBlobList(path)) sizeBytes += blob.sizeBytes
  return { count: rowCount, size_bytes: sizeBytes, file }
}

/**
 * Blobs never change: one that an earlier backup has copied is not read again. Those that are damaged are told all at once:
 * none of them can be backed up until somebody has mended it.
 */
async function copyBlobs({ client, blobs }: { client: pg.Client; blobs: BlobStore }, dir: string, manifest: Manifest) {
  const store = await createDiskBlobStore({ dir: join(dir, 'blobs') })
  let copiedBlobs = 0
  const problems: string[] = []
  await forEachBlob(readBlobList(join(dir, manifest.folder, blobListName)), async (blob) => {
    try {
      if (await copyBlob(blobs, store, blob)) copiedBlobs += 1
    } catch (error) {
      if (!(error instanceof DamagedBlobError)) throw error
      problems.push(`${error.message} (${await describeOwner(client, blob.key)})`)
    }
  })
  if (problems.length === 0) return { store, copiedBlobs }
  const advice = 'Put their bytes back, or delete what they belong to: until then there is no new backup.'
  throw new Error(`These blobs are damaged. ${advice}${listProblems(problems)}`)
}

/** What the backup of before had and this one has not, and what backups that did not finish have left. */
async function removeOld(dir: string, manifest: Manifest, store: BlobStore): Promise<void> {
  for (const name of await readdir(dir)) {
    const isOld = name.startsWith('database-') && name !== manifest.folder
    if (isOld) await rm(join(dir, name), { recursive: true })
  }
  const listed = readBlobList(join(dir, manifest.folder, blobListName))
  for await (const key of listOthers(store, listed)) await store.remove(key)
}
