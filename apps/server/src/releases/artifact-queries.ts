import type { ReleasePlatform } from '@godwit/contract'
import type { AuditActor } from '../audit/describe-actor.ts'
import type { Db } from '../db/connection.ts'

/** Uploaded artifacts of a release, oldest first. */
export async function listReleaseArtifacts(
  db: Db,
  input: { releaseId: number; arch?: string | undefined; platform?: ReleasePlatform | undefined },
) {
  return await db
    .selectFrom('release_artifacts')
    .selectAll()
    .where('release_id', '=', input.releaseId)
    .where('uploaded_at', 'is not', null)
    .$if(input.arch !== undefined, (query) => query.where('arch', '=', input.arch ?? ''))
    .$if(input.platform !== undefined, (query) => query.where('platform', '=', input.platform ?? 'android'))
    .orderBy('id')
    .execute()
}

export async function insertReleaseArtifact(
  db: Db,
  input: {
    releaseId: number
    platform: ReleasePlatform
    arch: string
    hash: string
    sizeBytes: number
    filename: string | null
    podfileLockHash: string | null
    canSideload: boolean
    blobKey: string
    registeredBy: AuditActor
  },
): Promise<{ id: number }> {
  return await db
    .insertInto('release_artifacts')
    .values({
      release_id: input.releaseId,
      platform: input.platform,
      arch: input.arch,
      hash: input.hash,
      size_bytes: input.sizeBytes,
      filename: input.filename,
      podfile_lock_hash: input.podfileLockHash,
      can_sideload: input.canSideload,
      blob_key: input.blobKey,
      registered_by: JSON.stringify(input.registeredBy),
    })
    .returning('id')
    .executeTakeFirstOrThrow()
}

/** Also those whose bytes never arrived. Answers their ids. */
export async function deleteReleaseArtifacts(
  db: Db,
  input: { releaseId: number; platform?: ReleasePlatform | undefined },
): Promise<number[]> {
  const rows = await db
    .deleteFrom('release_artifacts')
    .where('release_id', '=', input.releaseId)
    .$if(input.platform !== undefined, (query) => query.where('platform', '=', input.platform ?? 'android'))
    .returning('id')
    .execute()
  return rows.map(({ id }) => id).toSorted((a, b) => a - b)
}
