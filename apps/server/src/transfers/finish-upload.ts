import type { ErrorCode } from '@godwit/contract'
import type { Db } from '../db/connection.ts'
import type { Deps } from '../deps.ts'
import { changeApp } from '../devices/app-changes.ts'
import { AppError } from '../errors.ts'
import { findUploadedPatchArtifact, lockPatch } from '../patches/queries.ts'
import { findRegistrationConflict as findPatchConflict } from '../patches/rules.ts'
import { findPlatformStatus, listReleaseArtifacts } from '../releases/artifact-queries.ts'
import { lockRelease } from '../releases/queries.ts'
import {
  deleteArtifact,
  findBlob,
  findPatchArtifactByBlob,
  findReleaseArtifactByBlob,
  resetReceivedBytes,
  updateBlobSha256,
  updateUploadedAt,
} from './queries.ts'
import { placeReleaseArtifact, type UploadState } from './rules.ts'

type ReleaseArtifact = NonNullable<Awaited<ReturnType<typeof findReleaseArtifactByBlob>>>
type PatchArtifact = NonNullable<Awaited<ReturnType<typeof findPatchArtifactByBlob>>>
type Artifact = ({ kind: 'release' } & ReleaseArtifact) | ({ kind: 'patch' } & PatchArtifact)

export type Upload = UploadState & { blobKey: string; sha256: string | null; artifact: Artifact }

/** Nothing can be uploaded for an artifact that has been deleted, replaced or refused. */
export async function getUpload(db: Db, blobKey: string): Promise<Upload> {
  const blob = await findBlob(db, { key: blobKey })
  const artifact = await findArtifact(db, blobKey)
  if (blob === undefined || artifact === undefined) throw new AppError('not_found')
  return {
    blobKey,
    sizeBytes: blob.size_bytes,
    receivedBytes: blob.received_bytes,
    isFinished: blob.sha256 !== null,
    sha256: blob.sha256,
    artifact,
  }
}

async function findArtifact(db: Db, blobKey: string): Promise<Artifact | undefined> {
  const release = await findReleaseArtifactByBlob(db, { blobKey })
  if (release !== undefined) return { kind: 'release', ...release }
  const patch = await findPatchArtifactByBlob(db, { blobKey })
  return patch === undefined ? undefined : { kind: 'patch', ...patch }
}

/**
 * Completes the artifact whose bytes are all stored. The bytes are in place before the transaction that says so, and
 * everything here may be done again: after a crash between the two, the client's next request comes through here.
 */
export async function finishUpload(deps: Deps, blobKey: string): Promise<void> {
  const { artifact, isFinished, sizeBytes } = await getUpload(deps.db, blobKey)
  if (isFinished) return
  const sha256 = await deps.blobs.hash(blobKey, sizeBytes)
  if (sha256 === undefined) {
    await resetReceivedBytes(deps.db, { key: blobKey })
    throw new Error(`the store has lost bytes of blob ${blobKey}; its upload starts again`)
  }
  // The hash of a patch artifact is that of the file which the device makes of it: it cannot be verified here.
  if (artifact.kind === 'release' && artifact.hash.toLowerCase() !== sha256) {
    await resetReceivedBytes(deps.db, { key: blobKey })
    await deps.blobs.discard(blobKey)
    throw new AppError('hash_mismatch', `hash: ${artifact.hash} was registered, the bytes have ${sha256}`)
  }
  await deps.blobs.finish(blobKey, sizeBytes)
  const conflict = await completeArtifact(deps, artifact, { blobKey, sha256 })
  if (conflict !== undefined) throw new AppError(conflict)
}

type Completion = { blobKey: string; sha256: string }

/** The conflict that the artifact lost to, after its row has been deleted; undefined when it is complete. */
async function completeArtifact(
  deps: Deps,
  artifact: Artifact,
  completion: Completion,
): Promise<ErrorCode | undefined> {
  if (artifact.kind === 'release') {
    return await deps.db.transaction().execute((trx) => completeReleaseArtifact(deps, trx, artifact, completion))
  }
  return await changeApp(deps, artifact.appId, (trx) => completePatchArtifact(deps, trx, artifact, completion))
}

async function completeReleaseArtifact(deps: Deps, trx: Db, artifact: ReleaseArtifact, completion: Completion) {
  const table = 'release_artifacts'
  if ((await lockRelease(trx, artifact)) === undefined) throw new AppError('not_found')
  const [uploaded] = await listReleaseArtifacts(trx, artifact)
  const platformStatus = await findPlatformStatus(trx, artifact)
  const place = placeReleaseArtifact({ candidateId: artifact.id, uploadedId: uploaded?.id, platformStatus })
  if (place === 'refuse') {
    await dropArtifact(deps, trx, { table, id: artifact.id })
    return 'artifact_exists'
  }
  if (place === 'replace' && uploaded !== undefined) await dropArtifact(deps, trx, { table, id: uploaded.id })
  await markComplete(deps, trx, { table, id: artifact.id }, completion)
  return undefined
}

async function completePatchArtifact(deps: Deps, trx: Db, artifact: PatchArtifact, completion: Completion) {
  const table = 'patch_artifacts'
  if ((await lockPatch(trx, artifact)) === undefined) throw new AppError('not_found')
  const uploaded = await findUploadedPatchArtifact(trx, artifact)
  const conflict = uploaded?.id === artifact.id ? undefined : findPatchConflict({ uploaded, candidate: artifact })
  if (conflict === undefined) await markComplete(deps, trx, { table, id: artifact.id }, completion)
  else await dropArtifact(deps, trx, { table, id: artifact.id })
  return conflict
}

type ArtifactRow = Parameters<typeof deleteArtifact>[1]

/** The bytes go with the sweep, which finds that nothing refers to them. */
async function dropArtifact(deps: Deps, trx: Db, row: ArtifactRow): Promise<void> {
  await deleteArtifact(trx, row)
  await deps.jobs.requestBlobSweep(trx)
}

async function markComplete(deps: Deps, trx: Db, row: ArtifactRow, { blobKey, sha256 }: Completion): Promise<void> {
  if (!(await updateUploadedAt(trx, { ...row, uploadedAt: deps.clock() }))) throw new AppError('not_found')
  await updateBlobSha256(trx, { key: blobKey, sha256 })
}
