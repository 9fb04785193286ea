import type { ReleasePlatform } from '@godwit/contract'
import { sql } from 'kysely'
import type { AuditActor } from '../audit/describe-actor.ts'
import type { Db } from '../db/connection.ts'

/** Patches of a release with the names of their channels, newest first. */
export async function listPatches(db: Db, input: { releaseId: number }) {
  return await db
    .selectFrom('patches')
    .leftJoin('channels', 'channels.id', 'patches.channel_id')
    .select(['patches.id', 'patches.number', 'patches.is_rolled_back', 'patches.notes', 'channels.name as channel'])
    .where('patches.release_id', '=', input.releaseId)
    .orderBy('patches.number', 'desc')
    .execute()
}

/** Uploaded artifacts of all patches of a release, oldest first. */
export async function listPatchArtifacts(db: Db, input: { releaseId: number }) {
  return await db
    .selectFrom('patch_artifacts')
    .innerJoin('patches', 'patches.id', 'patch_artifacts.patch_id')
    .selectAll('patch_artifacts')
    .where('patches.release_id', '=', input.releaseId)
    .where('patch_artifacts.uploaded_at', 'is not', null)
    .orderBy('patch_artifacts.id')
    .execute()
}

export async function findPatchByClientId(db: Db, input: { releaseId: number; clientPatchId: string }) {
  return await db
    .selectFrom('patches')
    .leftJoin('channels', 'channels.id', 'patches.channel_id')
    .selectAll('patches')
    .select('channels.name as channel')
    .where('patches.release_id', '=', input.releaseId)
    .where('patches.client_patch_id', '=', input.clientPatchId)
    .executeTakeFirst()
}

/** Locks a patch of the app, and of the release when one is named. */
export async function lockPatch(db: Db, input: { appId: string; releaseId?: number; patchId: number }) {
  return await db
    .selectFrom('patches')
    .innerJoin('releases', 'releases.id', 'patches.release_id')
    .select([
      'patches.id',
      'patches.release_id',
      'patches.number',
      'patches.is_rolled_back',
      'patches.channel_id',
      'patches.notes',
      'releases.version as release_version',
    ])
    .where('releases.app_id', '=', input.appId)
    .where('patches.id', '=', input.patchId)
    .$if(input.releaseId !== undefined, (query) => query.where('patches.release_id', '=', input.releaseId ?? 0))
    .forUpdate('patches')
    .executeTakeFirst()
}

/** Takes the next number of the release, whose row the caller has locked. */
export async function insertNextPatch(
  db: Db,
  input: { releaseId: number; clientPatchId: string | null; metadata: Record<string, unknown> | null },
) {
  const { last_patch_number: number } = await db
    .updateTable('releases')
    .set((eb) => ({ last_patch_number: eb('last_patch_number', '+', 1) }))
    .where('id', '=', input.releaseId)
    .returning('last_patch_number')
    .executeTakeFirstOrThrow()
  return await db
    .insertInto('patches')
    .values({
      release_id: input.releaseId,
      number,
      client_patch_id: input.clientPatchId,
      metadata: input.metadata === null ? null : JSON.stringify(input.metadata),
    })
    .returningAll()
    .executeTakeFirstOrThrow()
}

export async function updatePatch(
  db: Db,
  input: { patchId: number; set: { notes?: string | null; is_rolled_back?: boolean; channel_id?: number } },
): Promise<void> {
  await db
    .updateTable('patches')
    .set({ ...input.set, updated_at: sql<Date>`now()` })
    .where('id', '=', input.patchId)
    .execute()
}

type ArtifactPlace = { patchId: number; platform: ReleasePlatform; arch: string }

export async function findUploadedPatchArtifact(db: Db, input: ArtifactPlace) {
  return await db
    .selectFrom('patch_artifacts')
    .select(['id', 'hash'])
    .where('patch_id', '=', input.patchId)
    .where('platform', '=', input.platform)
    .where('arch', '=', input.arch)
    .where('uploaded_at', 'is not', null)
    .executeTakeFirst()
}

export async function insertPatchArtifact(
  db: Db,
  input: ArtifactPlace & {
    hash: string
    hashSignature: string | null
    sizeBytes: number
    podfileLockHash: string | null
    blobKey: string
    registeredBy: AuditActor
  },
): Promise<{ id: number }> {
  return await db
    .insertInto('patch_artifacts')
    .values({
      patch_id: input.patchId,
      platform: input.platform,
      arch: input.arch,
      hash: input.hash,
      hash_signature: input.hashSignature,
      size_bytes: input.sizeBytes,
      podfile_lock_hash: input.podfileLockHash,
      blob_key: input.blobKey,
      registered_by: JSON.stringify(input.registeredBy),
    })
    .returning('id')
    .executeTakeFirstOrThrow()
}
