import { setTimeout as sleep } from 'node:timers/promises'
import type { PatchCheckResponse } from '@godwit/contract'
import { arch, percentile } from './devices.ts'
import type { Report } from './scenario.ts'
import { startControlRequests, takeFirst, type World } from './world.ts'

const quietMs = 4000
const goneMs = 6000
const backMs = 30_000
const refusalMs = 15_000

/** Takes the blobs away for a while: uploads are refused and resume, and nothing else may notice. */
export async function loseBlobs(
  report: Report,
  world: World,
  options: {
    fail: () => Promise<void>
    heal: () => Promise<void>
    /** What a download may be answered meanwhile; absent: it is not our server that answers. */
    downloads?: number[]
  },
): Promise<void> {
  const { publisher, devices, apps, server } = world
  const { release } = takeFirst(apps)
  const quiet = devices.enter('all was well')
  const usual = startControlRequests(server)
  await sleep(quietMs)
  const usualMs = percentile(
    (await usual.stop()).map(({ durationMs }) => durationMs),
    0.95,
  )

  await options.fail()
  const gone = devices.enter('the blobs were gone')
  const control = startControlRequests(server)
  const waiting = publisher.uploadRelease(release, { sizeBytes: 2_000_000, patienceMs: goneMs + refusalMs + backMs })
  const askedMs = performance.now()
  const refusal = await publisher.uploadRelease(release, { sizeBytes: 200_000 }).then(
    () => 'it was taken',
    (error: Error) => error.message,
  )
  const refusedMs = performance.now() - askedMs
  report.must(/ 503$/.test(refusal), `uploads are refused with 503: ${refusal}`)
  report.must(refusedMs < refusalMs, `within ${refusalMs / 1000} s`)
  report.note(`an upload was refused after ${(refusedMs / 1000).toFixed(1)} s`)
  if (options.downloads !== undefined) {
    const status = await download(world)
    report.must(options.downloads.includes(status), `downloads answer ${options.downloads.join(' or ')}: ${status}`)
  }
  await sleep(goneMs)
  const answers = await control.stop()
  const failed = answers.filter(({ status }) => status !== 200).length
  report.must(failed === 0, `control requests go on: ${failed} of ${answers.length} failed`)
  const p95 = percentile(
    answers.map(({ durationMs }) => durationMs),
    0.95,
  )
  report.note(`p95 of control requests ${usualMs.toFixed(0)} → ${p95.toFixed(0)} ms`)
  report.must(p95 < Math.max(usualMs * 5, 100), 'control requests are not slowed')

  devices.enter('the blobs came back')
  await options.heal()
  const healedMs = performance.now()
  const problem = await waiting.then(
    () => undefined,
    (error: Error) => error.message,
  )
  report.must(problem === undefined, `an upload that waited is completed: ${problem}`)
  report.recovered(performance.now() - healedMs)
  const again = devices.enter('all was well again')
  await sleep(quietMs)
  report.mustAnswerAll(gone)
  report.mustStayFast([quiet, again], gone)
  await world.verify(report)
}

/** What a device is offered. */
async function download({ server, apps }: World): Promise<number> {
  const { appId, version } = takeFirst(apps).release
  const check = { app_id: appId, channel: 'stable', release_version: version, platform: 'android', arch }
  const answer = await fetch(`${server.baseUrl}/api/v1/patches/check`, { method: 'POST', body: JSON.stringify(check) })
  const { patch } = (await answer.json()) as PatchCheckResponse
  const response = await fetch(patch?.download_url ?? '', { signal: AbortSignal.timeout(refusalMs) })
  await response.arrayBuffer().catch(() => undefined)
  return response.status
}
