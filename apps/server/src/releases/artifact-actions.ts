import type { ReleasePlatform } from '@godwit/contract'
import type { Deps } from '../deps.ts'
import { AppError } from '../errors.ts'
import { finishUpload } from '../transfers/finish-upload.ts'
import { registerUpload } from '../transfers/register-upload.ts'
import { getRelease } from './actions.ts'
import {
  deleteReleaseArtifacts as deleteReleaseArtifactRows,
  findPlatformStatus,
  insertReleaseArtifact,
  listReleaseArtifacts as listReleaseArtifactRows,
} from './artifact-queries.ts'
import { lockRelease } from './queries.ts'
import { findRegistrationConflict } from './rules.ts'

/** A download begins within this time of the listing; one that has begun may take longer. */
const downloadLifetimeMs = 60 * 60 * 1000

type ReleaseId = { appId: string; releaseId: number }

export async function listReleaseArtifacts(
  deps: Deps,
  input: ReleaseId & { arch: string | undefined; platform: ReleasePlatform | undefined },
) {
  await getRelease(deps, input)
  const rows = await listReleaseArtifactRows(deps.db, input)
  const expiresAt = new Date(deps.clock().getTime() + downloadLifetimeMs)
  return rows.map((row) => ({ ...row, url: deps.urls.sign('download', row.blob_key, expiresAt) }))
}

/** A registration whose bytes never arrived is in nobody's way: each one has an upload of its own. */
export async function registerReleaseArtifact(
  deps: Deps,
  input: ReleaseId & Omit<Parameters<typeof insertReleaseArtifact>[1], 'blobKey'>,
): Promise<{ id: number; url: string }> {
  const registered = await deps.db.transaction().execute(async (trx) => {
    if ((await lockRelease(trx, input)) === undefined) throw new AppError('not_found')
    const [uploaded] = await listReleaseArtifactRows(trx, input)
    const platformStatus = await findPlatformStatus(trx, input)
    const candidate = { hash: input.hash, size_bytes: input.sizeBytes }
    const conflict = findRegistrationConflict({ uploaded, platformStatus, candidate })
    if (conflict !== undefined) throw new AppError(conflict)
    const { blobKey, url } = await registerUpload(deps, trx, input)
    const { id } = await insertReleaseArtifact(trx, { ...input, blobKey })
    return { id, url, blobKey }
  })
  // A client sends no request at all for an empty file.
  if (input.sizeBytes === 0) await finishUpload(deps, registered.blobKey)
  return registered
}

export async function deleteReleaseArtifacts(
  deps: Deps,
  input: ReleaseId & { platform: ReleasePlatform | undefined },
): Promise<void> {
  await deps.db.transaction().execute(async (trx) => {
    if ((await lockRelease(trx, input)) === undefined) throw new AppError('not_found')
    await deleteReleaseArtifactRows(trx, input)
    await deps.jobs.requestBlobSweep(trx)
  })
}
