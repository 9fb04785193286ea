import type { PatchCheckResponse } from '@godwit/contract'

/** The base release, as a patch number: no patch has it. */
export const base = 0

/**
 * What a device has of its release's patches: the one that this launch runs, the last one that booted well and is still
 * on disk, and the one that the next launch boots.
 */
export type Installed = { running: number; good: number; next: number }

export type Report = {
  type: '__patch_download__' | '__patch_install__' | '__patch_install_failure__'
  patch_number: number
}

export type Launch = { installed: Installed; report?: Report }

/**
 * Boots what is next. A patch that differs from the last good one is reported: as installed, or, when it fails, as a
 * failure, with which the device runs the last good one. A real updater queues failures on disk and sends the first three
 * before its next check; every launch checks here, so there is never more than one.
 */
export function launch({ good, next }: Installed, failsToBoot: (patchNumber: number) => boolean): Launch {
  if (next === good) return { installed: { running: good, good, next } }
  if (failsToBoot(next)) {
    return {
      installed: { running: good, good, next: good },
      report: { type: '__patch_install_failure__', patch_number: next },
    }
  }
  return { installed: { running: next, good: next, next }, report: { type: '__patch_install__', patch_number: next } }
}

export type AnswerTaken = {
  installed: Installed
  /** To be downloaded now, and installed when that works. */
  wanted?: NonNullable<PatchCheckResponse['patch']>
}

/**
 * What the answer to a check does. Rolled back numbers come first, whatever the offer: their files are deleted, and what
 * runs goes on running until the next launch. Then any number that is not the next one is wanted, also a lower one,
 * unless it has failed on this device.
 */
export function takeAnswer(
  { running, good, next }: Installed,
  answer: PatchCheckResponse,
  hasFailed: (patchNumber: number) => boolean,
): AnswerTaken {
  const kept = { running, good, next }
  for (const number of answer.rolled_back_patch_numbers ?? []) {
    if (number === kept.good) kept.good = base
    if (number === kept.next) kept.next = kept.good
  }
  const { patch } = answer
  const isWanted = answer.patch_available && patch !== undefined && patch.number !== kept.next
  return isWanted && !hasFailed(patch.number) ? { installed: kept, wanted: patch } : { installed: kept }
}

/** After the download. It runs from the next launch on. */
export function install(installed: Installed, patchNumber: number): Installed {
  return { ...installed, next: patchNumber }
}

/** What kinds of updaters send with a check, and whether the server can tell their devices apart. */
export type Updater = 'current' | 'without client_id' | 'with patch_number'

/**
 * The patch number and the client_id of a check. Updaters before October 2025 sent no client_id with it, and those before
 * July 2024 the number that runs. All of them send a client_id with their events.
 */
export function identify(updater: Updater, clientId: string, { running }: Installed) {
  if (updater === 'current') return { client_id: clientId }
  if (updater === 'without client_id') return {}
  return { patch_number: running === base ? null : running }
}
