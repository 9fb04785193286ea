import { sql } from 'kysely'
import type { Parts } from '../blobs/blob-store.ts'
import type { Db } from '../db/connection.ts'

export async function insertBlob(db: Db, input: { key: string; sizeBytes: number; expiresAt: Date }): Promise<void> {
  await db
    .insertInto('blobs')
    .values({ key: input.key, size_bytes: input.sizeBytes, upload_expires_at: input.expiresAt })
    .execute()
}

/** A blob has a SHA-256 from the moment its artifact is complete, and from then on never changes. */
export async function findBlob(db: Db, input: { key: string }) {
  return await db
    .selectFrom('blobs')
    .select(['key', 'size_bytes', 'received_bytes', 'parts', 'sha256'])
    .where('key', '=', input.key)
    .executeTakeFirst()
}

export async function findReleaseArtifactByBlob(db: Db, input: { blobKey: string }) {
  return await db
    .selectFrom('release_artifacts')
    .innerJoin('releases', 'releases.id', 'release_artifacts.release_id')
    .innerJoin('apps', 'apps.id', 'releases.app_id')
    .innerJoin('organizations', 'organizations.id', 'apps.organization_id')
    .select([
      'release_artifacts.id',
      'release_artifacts.release_id as releaseId',
      'release_artifacts.platform',
      'release_artifacts.arch',
      'release_artifacts.hash',
      'release_artifacts.registered_by as registeredBy',
      'releases.app_id as appId',
      'releases.version as releaseVersion',
    ])
    .where('release_artifacts.blob_key', '=', input.blobKey)
    .where('organizations.deletion_started_at', 'is', null)
    .executeTakeFirst()
}

export async function findPatchArtifactByBlob(db: Db, input: { blobKey: string }) {
  return await db
    .selectFrom('patch_artifacts')
    .innerJoin('patches', 'patches.id', 'patch_artifacts.patch_id')
    .innerJoin('releases', 'releases.id', 'patches.release_id')
    .innerJoin('apps', 'apps.id', 'releases.app_id')
    .innerJoin('organizations', 'organizations.id', 'apps.organization_id')
    .select([
      'patch_artifacts.id',
      'patch_artifacts.patch_id as patchId',
      'patch_artifacts.platform',
      'patch_artifacts.arch',
      'patch_artifacts.hash',
      'patch_artifacts.registered_by as registeredBy',
      'patches.number as patchNumber',
      'patches.release_id as releaseId',
      'releases.app_id as appId',
      'releases.version as releaseVersion',
    ])
    .where('patch_artifacts.blob_key', '=', input.blobKey)
    .where('organizations.deletion_started_at', 'is', null)
    .executeTakeFirst()
}

/** False when the blob is not where this upload left it: another process has moved it, or it is finished or gone. */
export async function advanceReceivedBytes(
  db: Db,
  input: { key: string; fromBytes: number; fromParts: Parts; toBytes: number; toParts: Parts },
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('blobs')
    .set({ received_bytes: input.toBytes, parts: [...input.toParts] })
    .where('key', '=', input.key)
    .where('received_bytes', '=', input.fromBytes)
    .where('parts', '=', sql.val([...input.fromParts]))
    .where('sha256', 'is', null)
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

/** Starts an unfinished upload again; with `parts` only if it still consists of them. */
export async function resetReceivedBytes(db: Db, input: { key: string; parts?: Parts }): Promise<void> {
  const { key, parts } = input
  let reset = db.updateTable('blobs').set({ received_bytes: 0, parts: [] }).where('key', '=', key)
  if (parts !== undefined) reset = reset.where('parts', '=', sql.val([...parts]))
  await reset.where('sha256', 'is', null).execute()
}

export async function updateBlobSha256(db: Db, input: { key: string; sha256: string }): Promise<void> {
  await db.updateTable('blobs').set({ sha256: input.sha256, parts: [] }).where('key', '=', input.key).execute()
}

/** Which of these blobs may still receive bytes. */
export async function listUnfinishedBlobs(db: Db, input: { keys: string[] }): Promise<string[]> {
  const rows = await db
    .selectFrom('blobs')
    .select('key')
    .where('key', 'in', input.keys)
    .where('sha256', 'is', null)
    .execute()
  return rows.map(({ key }) => key)
}

/** Blobs that are complete, by key, from `fromKey` on. */
export async function listFinishedBlobs(
  db: Db,
  input: { fromKey: string; limit: number },
): Promise<{ key: string; sizeBytes: number; sha256: string }[]> {
  const rows = await db
    .selectFrom('blobs')
    .select(['key', 'size_bytes as sizeBytes', 'sha256'])
    .where('sha256', 'is not', null)
    .where('key', '>=', input.fromKey)
    .orderBy('key')
    .limit(input.limit)
    .execute()
  return rows.flatMap(({ sha256, ...row }) => (sha256 === null ? [] : [{ ...row, sha256 }]))
}

type ArtifactTable = 'release_artifacts' | 'patch_artifacts'

/** False when the artifact has been deleted meanwhile. */
export async function updateUploadedAt(
  db: Db,
  input: { table: ArtifactTable; id: number; uploadedAt: Date },
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable(input.table)
    .set({ uploaded_at: input.uploadedAt })
    .where('id', '=', input.id)
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

export async function deleteArtifact(db: Db, input: { table: ArtifactTable; id: number }): Promise<void> {
  await db.deleteFrom(input.table).where('id', '=', input.id).execute()
}

/** Deletes registrations whose bytes can no longer arrive. One that is being completed at this moment is left alone. */
export async function deleteExpiredArtifacts(db: Db, input: { table: ArtifactTable; now: Date }): Promise<void> {
  await sql`
    delete from ${sql.table(input.table)} where id in (
      select artifact.id from ${sql.table(input.table)} as artifact
      join blobs on blobs.key = artifact.blob_key
      where artifact.uploaded_at is null and blobs.upload_expires_at <= ${input.now}
      for update of artifact skip locked
    )`.execute(db)
}

/** Locks some blobs that no artifact refers to. Nothing will ever refer to them again: a blob is born with its artifact. */
export async function lockUnusedBlobs(db: Db, input: { limit: number }): Promise<string[]> {
  const rows = await db
    .selectFrom('blobs')
    .select('key')
    .where(({ not, exists, selectFrom }) =>
      not(exists(selectFrom('release_artifacts').select('id').whereRef('blob_key', '=', 'blobs.key'))),
    )
    .where(({ not, exists, selectFrom }) =>
      not(exists(selectFrom('patch_artifacts').select('id').whereRef('blob_key', '=', 'blobs.key'))),
    )
    .limit(input.limit)
    .forUpdate()
    .skipLocked()
    .execute()
  return rows.map(({ key }) => key)
}

export async function deleteBlobs(db: Db, input: { keys: string[] }): Promise<void> {
  await db.deleteFrom('blobs').where('key', 'in', input.keys).execute()
}
