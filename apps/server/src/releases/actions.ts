import type { ReleasePlatform, ReleaseStatus } from '@godwit/contract'
import { violatesUnique } from '../db/errors.ts'
import type { Deps } from '../deps.ts'
import { changeApp } from '../devices/app-changes.ts'
import { AppError } from '../errors.ts'
import {
  deleteRelease as deleteReleaseRow,
  insertRelease,
  listReleases,
  lockRelease,
  updateRelease as updateReleaseRow,
  upsertReleasePlatform,
} from './queries.ts'
import { nextNotes } from './rules.ts'

type ReleaseId = { appId: string; releaseId: number }

export async function createRelease(deps: Deps, input: Parameters<typeof insertRelease>[1]) {
  try {
    return { ...(await insertRelease(deps.db, input)), platform_statuses: {} }
  } catch (error) {
    if (violatesUnique(error, 'releases_version_key')) {
      throw new AppError('release_version_exists', 'version: the app has a release with it')
    }
    throw error
  }
}

export async function getRelease(deps: Deps, input: ReleaseId) {
  const [release] = await listReleases(deps.db, input)
  if (release === undefined) throw new AppError('not_found')
  return release
}

/** Any status may follow any other: the command line client sets a draft again when a release is run again. */
export async function updateRelease(
  deps: Deps,
  input: ReleaseId & {
    platform: ReleasePlatform | undefined
    status: ReleaseStatus | undefined
    metadata: Record<string, unknown> | undefined
    notes: string | null | undefined
  },
): Promise<void> {
  await deps.db.transaction().execute(async (trx) => {
    if ((await lockRelease(trx, input)) === undefined) throw new AppError('not_found')
    const { platform, status, metadata } = input
    if (platform !== undefined && (status !== undefined || metadata !== undefined)) {
      await upsertReleasePlatform(trx, { releaseId: input.releaseId, platform, status, metadata })
    }
    await updateReleaseRow(trx, { releaseId: input.releaseId, notes: nextNotes(input.notes) })
  })
}

/** Deletes a release with its patches; devices of that version are then offered nothing. The bytes follow in a job. */
export async function deleteRelease(deps: Deps, input: ReleaseId): Promise<void> {
  await changeApp(deps, input.appId, async (trx) => {
    if (!(await deleteReleaseRow(trx, input))) throw new AppError('not_found')
    await deps.jobs.requestBlobSweep(trx)
  })
}
