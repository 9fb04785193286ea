import { findChannel } from '../channels/queries.ts'
import type { Deps } from '../deps.ts'
import { changeApp } from '../devices/app-changes.ts'
import { AppError } from '../errors.ts'
import { getRelease } from '../releases/actions.ts'
import { lockRelease } from '../releases/queries.ts'
import { nextNotes } from '../releases/rules.ts'
import { registerUpload } from '../transfers/register-upload.ts'
import {
  findPatchByClientId,
  findUploadedPatchArtifact,
  insertNextPatch,
  insertPatchArtifact,
  listPatchArtifacts,
  listPatches,
  lockPatch,
  updatePatch as updatePatchRow,
} from './queries.ts'
import { findRegistrationConflict } from './rules.ts'

type PatchId = { appId: string; releaseId: number; patchId: number }

export async function listReleasePatches(deps: Deps, input: { appId: string; releaseId: number }) {
  await getRelease(deps, input)
  const patches = await listPatches(deps.db, input)
  const artifacts = Map.groupBy(await listPatchArtifacts(deps.db, input), ({ patch_id }) => patch_id)
  return patches.map((patch) => ({ ...patch, artifacts: artifacts.get(patch.id) ?? [] }))
}

/** Numbers a new patch, or finds the one that this client made before. The lock on the release leaves no gap. */
export async function createPatch(
  deps: Deps,
  input: {
    appId: string
    releaseId: number
    clientPatchId: string | null
    metadata: Record<string, unknown> | null
  },
) {
  return await deps.db.transaction().execute(async (trx) => {
    if ((await lockRelease(trx, input)) === undefined) throw new AppError('not_found', 'release_id: is not of this app')
    if (input.clientPatchId !== null) {
      const { releaseId, clientPatchId } = input
      const existing = await findPatchByClientId(trx, { releaseId, clientPatchId })
      if (existing?.is_rolled_back === true) throw new AppError('patches_create_existing_patch_rolled_back')
      if (existing !== undefined) return existing
    }
    return { ...(await insertNextPatch(trx, input)), channel: null }
  })
}

export async function updatePatch(deps: Deps, input: PatchId & { notes: string | null | undefined }): Promise<void> {
  await deps.db.transaction().execute(async (trx) => {
    if ((await lockPatch(trx, input)) === undefined) throw new AppError('not_found')
    const notes = nextNotes(input.notes)
    if (notes !== undefined) await updatePatchRow(trx, { patchId: input.patchId, set: { notes } })
  })
}

/** Devices are offered the artifact when its bytes have arrived and the patch is on a channel. */
export async function registerPatchArtifact(
  deps: Deps,
  input: { appId: string } & Omit<Parameters<typeof insertPatchArtifact>[1], 'blobKey'>,
): Promise<{ id: number; url: string }> {
  return await deps.db.transaction().execute(async (trx) => {
    if ((await lockPatch(trx, input)) === undefined) throw new AppError('not_found')
    const uploaded = await findUploadedPatchArtifact(trx, input)
    const conflict = findRegistrationConflict({ uploaded, candidate: input })
    if (conflict !== undefined) throw new AppError(conflict)
    const { blobKey, url } = await registerUpload(deps, trx, input)
    const { id } = await insertPatchArtifact(trx, { ...input, blobKey })
    return { id, url }
  })
}

/** Moves a patch to a channel. Devices on the channel that it leaves are offered what is left there. */
export async function promotePatch(
  deps: Deps,
  input: { appId: string; patchId: number; channelId: number },
): Promise<void> {
  await changeApp(deps, input.appId, async (trx) => {
    if ((await lockPatch(trx, input)) === undefined) throw new AppError('not_found', 'patch_id: is not of this app')
    if ((await findChannel(trx, input)) === undefined) throw new AppError('not_found', 'channel_id: is not of this app')
    await updatePatchRow(trx, { patchId: input.patchId, set: { channel_id: input.channelId } })
  })
}

/** Sets whether devices must uninstall the patch. False when it was so already. */
export async function setPatchRolledBack(deps: Deps, input: PatchId & { isRolledBack: boolean }): Promise<boolean> {
  return await changeApp(deps, input.appId, async (trx) => {
    const patch = await lockPatch(trx, input)
    if (patch === undefined) throw new AppError('not_found')
    if (patch.is_rolled_back === input.isRolledBack) return false
    await updatePatchRow(trx, { patchId: input.patchId, set: { is_rolled_back: input.isRolledBack } })
    return true
  })
}
