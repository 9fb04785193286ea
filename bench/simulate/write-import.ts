import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { finished } from 'node:stream/promises'
import type { PatchCheckResponse } from '@godwit/contract'
import type { Simulation } from './simulation.ts'

/** A patch of every release: offered from its day on, rolled back from another. Days count from 0. */
export type PlannedPatch = { number: number; offeredDay: number; rolledBackDay: number | undefined }

const daySeconds = 86_400
const blockChars = 64 * 1024

/** What a server would have recorded, one observation a line, in the order of time. Old updaters leave none. */
export async function writeImport(
  simulation: Simulation,
  options: { file: string; patches: PlannedPatch[]; signal?: AbortSignal },
): Promise<void> {
  const { population, schedule, counts, startSeconds } = simulation
  const answerAt = createAnswers(options.patches)
  const stream = createWriteStream(options.file)
  const closed = finished(stream)
  // Awaited below; until then a full disk must not end the process.
  closed.catch(() => undefined)
  let block = ''
  const flush = async () => {
    const isFull = !stream.write(block)
    block = ''
    if (isFull) await Promise.race([once(stream, 'drain'), closed])
    else await new Promise((resolve) => setImmediate(resolve))
  }
  for (let due = schedule.next(); due !== undefined; due = schedule.next()) {
    const { device, atSeconds } = due
    const report = population.launch(device)
    if (report !== undefined) counts.events[report.type] += 1
    const { releaseVersion, platform, arch, updater } = population.describe(device)
    if (updater === 'current') {
      const { running } = population.installed(device)
      const time = new Date((startSeconds + atSeconds) * 1000).toISOString()
      const patch_number = running === 0 ? null : running
      const client_id = population.clientId(device)
      const line = { client_id, platform, arch, release_version: releaseVersion, patch_number, time }
      block += `${JSON.stringify(line)}\n`
      counts.observations += 1
    }
    takeAnswer(simulation, device, answerAt(atSeconds))
    simulation.atSeconds = atSeconds
    if (block.length >= blockChars) {
      await flush()
      if (options.signal?.aborted) break
    }
  }
  stream.end(block)
  await closed
}

function takeAnswer({ population, counts }: Simulation, device: number, answer: PatchCheckResponse): void {
  const { wanted, isUninstalled } = population.takeAnswer(device, answer)
  if (isUninstalled) counts.uninstalls += 1
  if (wanted === undefined) return
  population.install(device, wanted.number)
  counts.downloads += 1
  counts.events.__patch_download__ += 1
}

/** The answer to everybody at a time that never goes back. It changes only with the day. */
function createAnswers(patches: PlannedPatch[]): (atSeconds: number) => PatchCheckResponse {
  let day = -1
  let answer: PatchCheckResponse = { patch_available: false }
  return (atSeconds) => {
    const today = Math.floor(atSeconds / daySeconds)
    if (today !== day) answer = answerOfDay(patches, today)
    day = today
    return answer
  }
}

export function answerOfDay(patches: PlannedPatch[], day: number): PatchCheckResponse {
  const isRolledBack = ({ rolledBackDay }: PlannedPatch) => rolledBackDay !== undefined && rolledBackDay <= day
  const offered = patches.filter((patch) => patch.offeredDay <= day && !isRolledBack(patch))
  const number = Math.max(0, ...offered.map((patch) => patch.number))
  const rolledBack = patches.filter(isRolledBack).map((patch) => patch.number)
  return {
    patch_available: number > 0,
    ...(number > 0 ? { patch: { number, download_url: '', hash: '' } } : {}),
    rolled_back_patch_numbers: rolledBack,
  }
}
