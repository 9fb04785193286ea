import { describeActor } from '../audit/describe-actor.ts'
import { recordAppEvent } from '../audit/record-event.ts'
import { findChannel } from '../channels/queries.ts'
import { defaultChannelName } from '../channels/rules.ts'
import type { Deps } from '../deps.ts'
import { changeApp } from '../devices/app-changes.ts'
import { AppError } from '../errors.ts'
import type { Actor } from '../http/actor.ts'
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
  actor: Actor,
  input: {
    appId: string
    releaseId: number
    clientPatchId: string | null
    metadata: Record<string, unknown> | null
  },
) {
  return await deps.db.transaction().execute(async (trx) => {
    const release = await lockRelease(trx, input)
    if (release === undefined) throw new AppError('not_found', 'release_id: is not of this app')
    if (input.clientPatchId !== null) {
      const { releaseId, clientPatchId } = input
      const existing = await findPatchByClientId(trx, { releaseId, clientPatchId })
      if (existing?.is_rolled_back === true) throw new AppError('patches_create_existing_patch_rolled_back')
      if (existing !== undefined) return existing
    }
    const patch = await insertNextPatch(trx, input)
    const described = describePatch(input.appId, { ...patch, release_version: release.version })
    await recordAppEvent(deps, trx, actor, { operation: 'patch.create', ...described })
    return { ...patch, channel: null }
  })
}

export async function updatePatch(
  deps: Deps,
  actor: Actor,
  input: PatchId & { notes: string | null | undefined },
): Promise<void> {
  await deps.db.transaction().execute(async (trx) => {
    const patch = await lockPatch(trx, input)
    if (patch === undefined) throw new AppError('not_found')
    const notes = nextNotes(input.notes)
    if (notes === undefined || notes === patch.notes) return
    await updatePatchRow(trx, { patchId: input.patchId, set: { notes } })
    await recordAppEvent(deps, trx, actor, { operation: 'patch.notes_update', ...describePatch(input.appId, patch) })
  })
}

/** Devices are offered the artifact when its bytes have arrived and the patch is on a channel. */
export async function registerPatchArtifact(
  deps: Deps,
  actor: Actor,
  input: { appId: string } & Omit<Parameters<typeof insertPatchArtifact>[1], 'blobKey' | 'registeredBy'>,
): Promise<{ id: number; url: string }> {
  return await deps.db.transaction().execute(async (trx) => {
    if ((await lockPatch(trx, input)) === undefined) throw new AppError('not_found')
    const uploaded = await findUploadedPatchArtifact(trx, input)
    const conflict = findRegistrationConflict({ uploaded, candidate: input })
    if (conflict !== undefined) throw new AppError(conflict)
    const { blobKey, url } = await registerUpload(deps, trx, input)
    const { id } = await insertPatchArtifact(trx, { ...input, blobKey, registeredBy: describeActor(actor) })
    return { id, url }
  })
}

/** Moves a patch to a channel. Devices on the channel that it leaves are offered what is left there. */
export async function promotePatch(
  deps: Deps,
  actor: Actor,
  input: { appId: string; patchId: number; channelId: number },
): Promise<void> {
  const { appId, patchId, channelId } = input
  await changeApp(deps, appId, async (trx) => {
    const patch = await lockPatch(trx, input)
    if (patch === undefined) throw new AppError('not_found', 'patch_id: is not of this app')
    const channel = await findChannel(trx, input)
    if (channel === undefined) throw new AppError('not_found', 'channel_id: is not of this app')
    if (patch.channel_id === channelId) return
    await updatePatchRow(trx, { patchId, set: { channel_id: channelId } })
    const previousChannel =
      patch.channel_id === null ? undefined : await findChannel(trx, { appId, channelId: patch.channel_id })
    const { resources, details } = describePatch(appId, patch)
    await recordAppEvent(deps, trx, actor, {
      operation: channel.name === defaultChannelName ? 'patch.promote' : 'patch.channel_update',
      appId,
      resources,
      details: { ...details, channel: channel.name, previous_channel: previousChannel?.name },
    })
  })
}

/** Sets whether devices must uninstall the patch. False when it was so already. */
export async function setPatchRolledBack(
  deps: Deps,
  actor: Actor,
  input: PatchId & { isRolledBack: boolean },
): Promise<boolean> {
  return await changeApp(deps, input.appId, async (trx) => {
    const patch = await lockPatch(trx, input)
    if (patch === undefined) throw new AppError('not_found')
    if (patch.is_rolled_back === input.isRolledBack) return false
    await updatePatchRow(trx, { patchId: input.patchId, set: { is_rolled_back: input.isRolledBack } })
    await recordAppEvent(deps, trx, actor, {
      operation: input.isRolledBack ? 'patch.rollback' : 'patch.rollforward',
      ...describePatch(input.appId, patch),
    })
    return true
  })
}

function describePatch(
  appId: string,
  patch: { id: number; release_id: number; number: number; release_version: string },
) {
  const resources = [
    { type: 'patch' as const, uid: patch.id },
    { type: 'release' as const, uid: patch.release_id },
    { type: 'app' as const, uid: appId },
  ]
  return { appId, resources, details: { patch_number: patch.number, release_version: patch.release_version } }
}
