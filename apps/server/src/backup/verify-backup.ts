import { join } from 'node:path'
import type { BlobStore } from '../blobs/blob-store.ts'
import { forEachBlob } from '../blobs/copy-blob.ts'
import { createDiskBlobStore } from '../blobs/disk-blob-store.ts'
import { blobListName, readBlobList } from './blob-list.ts'
import { findFileProblem } from './files.ts'
import { type Manifest, readManifest } from './manifest.ts'
import { listProblems } from './rules.ts'

export type VerifiedBackup = { dir: string; manifest: Manifest; blobs: BlobStore; blobListPath: string }

/** Reads every byte of a backup. Throws with a line for each file that is not what was written. */
export async function verifyBackup(dir: string): Promise<VerifiedBackup> {
  const manifest = await readManifest(dir)
  const problems = await listFileProblems(dir, manifest)
  const blobListPath = join(dir, manifest.folder, blobListName)
  const blobs = await createDiskBlobStore({ dir: join(dir, 'blobs') })
  if (problems.length === 0) problems.push(...(await listBlobProblems(blobs, { dir, blobListPath })))
  if (problems.length === 0) return { dir, manifest, blobs, blobListPath }
  throw new Error(`The backup is damaged:${listProblems(problems)}`)
}

async function listFileProblems(dir: string, { folder, tables, blobs }: Manifest): Promise<string[]> {
  const problems: string[] = []
  for (const file of [...tables.map((table) => table.file), blobs.file]) {
    const problem = await findFileProblem(join(dir, folder, file.name), file)
    if (problem !== undefined) problems.push(problem)
  }
  return problems
}

async function listBlobProblems(
  blobs: BlobStore,
  { dir, blobListPath }: { dir: string; blobListPath: string },
): Promise<string[]> {
  const problems: string[] = []
  await forEachBlob(readBlobList(blobListPath), async ({ key, sizeBytes, sha256 }) => {
    const path = join(dir, 'blobs', key.slice(0, 2), key.slice(2, 4), key)
    const storedBytes = (await blobs.find(key))?.sizeBytes
    if (storedBytes === undefined) problems.push(`${path} is missing`)
    else if (storedBytes !== sizeBytes) problems.push(`${path} has ${storedBytes} bytes instead of ${sizeBytes}`)
    else if ((await blobs.hash(key, { sizeBytes, parts: [] })) !== sha256)
      problems.push(`${path} is damaged: it has another SHA-256`)
  })
  return problems
}
