import type { ReleasePlatform } from '@godwit/contract'
import { describeActor } from '../audit/describe-actor.ts'
import { recordAppEvent } from '../audit/record-event.ts'
import type { Deps } from '../deps.ts'
import { AppError } from '../errors.ts'
import type { Actor } from '../http/actor.ts'
import { refuseOverLimit } from '../http/rate-limit.ts'
import { finishUpload } from '../transfers/finish-upload.ts'
import { registerUpload } from '../transfers/register-upload.ts'
import { getRelease } from './actions.ts'
import {
  deleteReleaseArtifacts as deleteReleaseArtifactRows,
  insertReleaseArtifact,
  listReleaseArtifacts as listReleaseArtifactRows,
} from './artifact-queries.ts'
import { findReleasePlatform, lockRelease } from './queries.ts'
import { findRegistrationConflict } from './rules.ts'

/** A download begins within this time of the listing; one that has begun may take longer. */
const downloadLifetimeMs = 60 * 60 * 1000

type ReleaseId = { appId: string; releaseId: number }

/** Tells that whoever asked can now download what is listed. */
export async function listReleaseArtifacts(
  deps: Deps,
  actor: Actor,
  input: ReleaseId & { arch: string | undefined; platform: ReleasePlatform | undefined },
) {
  refuseOverLimit(deps.linkLimiter.take(describeActor(actor).actorId ?? ''))
  const rows = await deps.db.transaction().execute(async (trx) => {
    const release = await getRelease({ db: trx }, input)
    const found = await listReleaseArtifactRows(trx, input)
    if (found.length === 0) return found
    await recordAppEvent(deps, trx, actor, {
      operation: 'release_artifact.download',
      appId: input.appId,
      resources: describeArtifacts(
        input,
        found.map(({ id }) => id),
      ),
      details: { release_version: release.version, platform: input.platform, arch: input.arch },
    })
    return found
  })
  const expiresAt = new Date(deps.clock().getTime() + downloadLifetimeMs)
  return rows.map((row) => ({ ...row, url: deps.urls.sign('download', row.blob_key, expiresAt) }))
}

/** A registration whose bytes never arrived is in nobody's way: each one has an upload of its own. */
export async function registerReleaseArtifact(
  deps: Deps,
  actor: Actor,
  input: ReleaseId & Omit<Parameters<typeof insertReleaseArtifact>[1], 'blobKey' | 'registeredBy'>,
): Promise<{ id: number; url: string }> {
  const registered = await deps.db.transaction().execute(async (trx) => {
    if ((await lockRelease(trx, input)) === undefined) throw new AppError('not_found')
    const [uploaded] = await listReleaseArtifactRows(trx, input)
    const platformStatus = (await findReleasePlatform(trx, input))?.status
    const candidate = { hash: input.hash, size_bytes: input.sizeBytes }
    const conflict = findRegistrationConflict({ uploaded, platformStatus, candidate })
    if (conflict !== undefined) throw new AppError(conflict)
    const { blobKey, url } = await registerUpload(deps, trx, input)
    const { id } = await insertReleaseArtifact(trx, { ...input, blobKey, registeredBy: describeActor(actor) })
    return { id, url, blobKey }
  })
  // A client sends no request at all for an empty file.
  if (input.sizeBytes === 0) await finishUpload(deps, registered.blobKey, actor.source)
  return registered
}

export async function deleteReleaseArtifacts(
  deps: Deps,
  actor: Actor,
  input: ReleaseId & { platform: ReleasePlatform | undefined },
): Promise<void> {
  await deps.db.transaction().execute(async (trx) => {
    const release = await lockRelease(trx, input)
    if (release === undefined) throw new AppError('not_found')
    const removedIds = await deleteReleaseArtifactRows(trx, input)
    if (removedIds.length === 0) return
    await deps.jobs.requestBlobSweep(trx)
    await recordAppEvent(deps, trx, actor, {
      operation: 'release_artifact.delete',
      appId: input.appId,
      resources: describeArtifacts(input, removedIds),
      details: { release_version: release.version, platform: input.platform },
    })
  })
}

function describeArtifacts({ appId, releaseId }: ReleaseId, ids: number[]) {
  return [
    ...ids.map((uid) => ({ type: 'release_artifact' as const, uid })),
    { type: 'release' as const, uid: releaseId },
    { type: 'app' as const, uid: appId },
  ]
}
