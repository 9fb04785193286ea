import { isDeepStrictEqual } from 'node:util'
import type { ReleasePlatform, ReleaseStatus } from '@godwit/contract'
import { recordAppEvent } from '../audit/record-event.ts'
import type { Db } from '../db/connection.ts'
import { violatesUnique } from '../db/errors.ts'
import type { Deps } from '../deps.ts'
import { changeApp } from '../devices/app-changes.ts'
import { AppError } from '../errors.ts'
import type { Actor } from '../http/actor.ts'
import {
  deleteRelease as deleteReleaseRow,
  findReleasePlatform,
  insertRelease,
  listReleases,
  lockRelease,
  updateRelease as updateReleaseRow,
  upsertReleasePlatform,
} from './queries.ts'
import { nextNotes } from './rules.ts'

type ReleaseId = { appId: string; releaseId: number }

export async function createRelease(deps: Deps, actor: Actor, input: Parameters<typeof insertRelease>[1]) {
  const { appId, version } = input
  try {
    return await deps.db.transaction().execute(async (trx) => {
      const release = await insertRelease(trx, input)
      const resources = describeRelease({ appId, releaseId: release.id })
      const details = { release_version: version }
      await recordAppEvent(deps, trx, actor, { operation: 'release.create', appId, resources, details })
      return { ...release, platform_statuses: {} }
    })
  } catch (error) {
    if (violatesUnique(error, 'releases_version_key')) {
      throw new AppError('release_version_exists', 'version: the app has a release with it')
    }
    throw error
  }
}

export async function getRelease(deps: Pick<Deps, 'db'>, input: ReleaseId) {
  const [release] = await listReleases(deps.db, input)
  if (release === undefined) throw new AppError('not_found')
  return release
}

/** Any status may follow any other: the command line client sets a draft again when a release is run again. */
export async function updateRelease(
  deps: Deps,
  actor: Actor,
  input: ReleaseId & PlatformChange & { notes: string | null | undefined },
): Promise<void> {
  const { appId, releaseId } = input
  await deps.db.transaction().execute(async (trx) => {
    const release = await lockRelease(trx, input)
    if (release === undefined) throw new AppError('not_found')
    const platformChanges = await changePlatform(trx, input)
    const notes = nextNotes(input.notes)
    const isNotesChange = notes !== undefined && notes !== release.notes
    if (platformChanges === undefined && !isNotesChange) return
    await updateReleaseRow(trx, { releaseId, notes })
    await recordAppEvent(deps, trx, actor, {
      operation: 'release.update',
      appId,
      resources: describeRelease(input),
      details: {
        release_version: release.version,
        ...platformChanges,
        notes: isNotesChange ? 'changed' : undefined,
      },
    })
  })
}

type PlatformChange = {
  platform: ReleasePlatform | undefined
  status: ReleaseStatus | undefined
  metadata: Record<string, unknown> | undefined
}

/** What is different then, as the audit log tells it; undefined: nothing. */
async function changePlatform(trx: Db, input: PlatformChange & { releaseId: number }) {
  const { releaseId, platform, status, metadata } = input
  if (platform === undefined || (status === undefined && metadata === undefined)) return undefined
  const before = await findReleasePlatform(trx, { releaseId, platform })
  const after = await upsertReleasePlatform(trx, { releaseId, platform, status, metadata })
  const isStatusChange = before?.status !== after.status
  const isMetadataChange = !isDeepStrictEqual(before?.metadata ?? null, after.metadata)
  if (!isStatusChange && !isMetadataChange) return undefined
  return {
    platform,
    ...(isStatusChange ? { previous_status: before?.status, status: after.status } : {}),
    ...(isMetadataChange ? { metadata: 'changed' } : {}),
  }
}

/** Deletes a release with its patches; devices of that version are then offered nothing. The bytes follow in a job. */
export async function deleteRelease(deps: Deps, actor: Actor, input: ReleaseId): Promise<void> {
  const { appId } = input
  await changeApp(deps, appId, async (trx) => {
    const release = await deleteReleaseRow(trx, input)
    if (release === undefined) throw new AppError('not_found')
    await deps.jobs.requestBlobSweep(trx)
    const details = { release_version: release.version }
    const resources = describeRelease(input)
    await recordAppEvent(deps, trx, actor, { operation: 'release.delete', appId, resources, details })
  })
}

function describeRelease({ appId, releaseId }: ReleaseId) {
  return [
    { type: 'release' as const, uid: releaseId },
    { type: 'app' as const, uid: appId },
  ]
}
