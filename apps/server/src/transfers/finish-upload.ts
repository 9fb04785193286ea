import type { ErrorCode } from '@godwit/contract'
import { canAnalyze } from '../analysis/rules.ts'
import { type AuditActor, unknownActor } from '../audit/describe-actor.ts'
import { type Doer, recordAppEvent } from '../audit/record-event.ts'
import type { Parts } from '../blobs/blob-store.ts'
import type { Db } from '../db/connection.ts'
import type { Deps } from '../deps.ts'
import { changeApp } from '../devices/app-changes.ts'
import { AppError } from '../errors.ts'
import type { RequestSource } from '../http/actor.ts'
import { findUploadedPatchArtifact, lockPatch } from '../patches/queries.ts'
import { findRegistrationConflict as findPatchConflict } from '../patches/rules.ts'
import { listReleaseArtifacts } from '../releases/artifact-queries.ts'
import { findReleasePlatform, lockRelease } from '../releases/queries.ts'
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

export type Upload = UploadState & { blobKey: string; parts: Parts; sha256: string | null; artifact: Artifact }

/** Nothing can be uploaded for an artifact that has been deleted, replaced or refused. */
export async function getUpload(db: Db, blobKey: string): Promise<Upload> {
  const blob = await findBlob(db, { key: blobKey })
  const artifact = await findArtifact(db, blobKey)
  if (blob === undefined || artifact === undefined) throw new AppError('not_found')
  return {
    blobKey,
    sizeBytes: blob.size_bytes,
    receivedBytes: blob.received_bytes,
    parts: blob.parts,
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
 * `from` is that of the request that completes it, for the audit log.
 */
export async function finishUpload(deps: Deps, blobKey: string, from: RequestSource): Promise<void> {
  const { artifact, isFinished, sizeBytes, parts } = await getUpload(deps.db, blobKey)
  if (isFinished) return
  const sha256 = await deps.blobs.hash(blobKey, { sizeBytes, parts })
  if (sha256 === undefined) {
    await resetReceivedBytes(deps.db, { key: blobKey, parts })
    throw new Error(`the store has lost bytes of blob ${blobKey}; its upload starts again`)
  }
  // The hash of a patch artifact is that of the file which the device makes of it: it cannot be verified here.
  if (artifact.kind === 'release' && artifact.hash.toLowerCase() !== sha256) {
    await resetReceivedBytes(deps.db, { key: blobKey, parts })
    await deps.blobs.discard(blobKey, parts)
    throw new AppError('hash_mismatch', `hash: ${artifact.hash} was registered, the bytes have ${sha256}`)
  }
  await deps.blobs.finish(blobKey, { sizeBytes, sha256, parts })
  const conflict = await completeArtifact(deps, artifact, { blobKey, sha256, from })
  if (conflict !== undefined) throw new AppError(conflict)
  if (artifact.kind === 'patch') deps.downloads.keep(blobKey)
}

type Completion = { blobKey: string; sha256: string; from: RequestSource }

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
  const platformStatus = (await findReleasePlatform(trx, artifact))?.status
  const place = placeReleaseArtifact({ candidateId: artifact.id, uploadedId: uploaded?.id, platformStatus })
  if (place === 'refuse') {
    await dropArtifact(deps, trx, { table, id: artifact.id })
    return 'artifact_exists'
  }
  const replaced = place === 'replace' ? uploaded : undefined
  if (replaced !== undefined) await dropArtifact(deps, trx, { table, id: replaced.id })
  await markComplete(deps, trx, { table, id: artifact.id }, completion)
  // Otherwise another request has completed it, and recorded that.
  if (uploaded?.id === artifact.id) return undefined
  await recordReleaseUpload(deps, trx, { artifact, completion, replaced })
  const { releaseId, platform, arch } = artifact
  if (canAnalyze(platform, arch)) await deps.jobs.requestAnalyses(trx, [{ releaseId, platform }])
  return undefined
}

async function completePatchArtifact(deps: Deps, trx: Db, artifact: PatchArtifact, completion: Completion) {
  const table = 'patch_artifacts'
  if ((await lockPatch(trx, artifact)) === undefined) throw new AppError('not_found')
  const uploaded = await findUploadedPatchArtifact(trx, artifact)
  const conflict = uploaded?.id === artifact.id ? undefined : findPatchConflict({ uploaded, candidate: artifact })
  if (conflict !== undefined) {
    await dropArtifact(deps, trx, { table, id: artifact.id })
    return conflict
  }
  await markComplete(deps, trx, { table, id: artifact.id }, completion)
  if (uploaded === undefined) await recordPatchUpload(deps, trx, { artifact, completion })
  return undefined
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

async function recordReleaseUpload(
  deps: Deps,
  trx: Db,
  input: { artifact: ReleaseArtifact; completion: Completion; replaced: { id: number } | undefined },
): Promise<void> {
  const { artifact, completion, replaced } = input
  const { id, appId, releaseId, releaseVersion, platform, arch } = artifact
  await recordAppEvent(deps, trx, describeUploader(artifact, completion), {
    operation: replaced === undefined ? 'release_artifact.upload' : 'release_artifact.replace',
    appId,
    resources: [
      { type: 'release_artifact', uid: id },
      { type: 'release', uid: releaseId },
      { type: 'app', uid: appId },
    ],
    details: { release_version: releaseVersion, platform, arch, replaced_artifact_id: replaced?.id },
  })
}

async function recordPatchUpload(
  deps: Deps,
  trx: Db,
  { artifact, completion }: { artifact: PatchArtifact; completion: Completion },
): Promise<void> {
  const { id, appId, releaseId, releaseVersion, patchId, patchNumber, platform, arch } = artifact
  await recordAppEvent(deps, trx, describeUploader(artifact, completion), {
    operation: 'patch_artifact.upload',
    appId,
    resources: [
      { type: 'patch_artifact', uid: id },
      { type: 'patch', uid: patchId },
      { type: 'release', uid: releaseId },
      { type: 'app', uid: appId },
    ],
    details: { patch_number: patchNumber, release_version: releaseVersion, platform, arch },
  })
}

/** The URL names nobody: who registered the artifact has uploaded it. */
function describeUploader({ registeredBy }: ReleaseArtifact | PatchArtifact, { from }: Completion): Doer {
  return { by: registeredBy === null ? unknownActor : (registeredBy as AuditActor), from }
}
