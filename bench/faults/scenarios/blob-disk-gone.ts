import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { PatchCheckResponse } from '@godwit/contract'
import { arch } from '../devices.ts'
import type { Report, Scenario } from '../scenario.ts'
import { canMount, mountSmallDisk, type SmallDisk } from '../small-disk.ts'
import { makeFolder, openWorld, startControlRequests, takeFirst, type World } from '../world.ts'

const goneMs = 6000
const backMs = 15_000

async function goWithout(
  report: Report,
  options: { fail: (disk: SmallDisk) => Promise<void>; heal: (disk: SmallDisk) => Promise<void>; downloads: number[] },
): Promise<void> {
  if (!canMount()) return report.skip('only root may mount a disk that can go away')
  const disk = await mountSmallDisk(join(await makeFolder(), 'blobs'), 64)
  const world = await openWorld({ GODWIT_BLOBS: `file:${disk.folder}` })
  const { publisher, devices, apps, server } = world
  const { release } = takeFirst(apps)
  const quiet = devices.enter('all was well')
  await sleep(4000)

  await options.fail(disk)
  const gone = devices.enter('the blobs were gone')
  const control = startControlRequests(server)
  const refusal = await publisher.uploadRelease(release, { sizeBytes: 200_000 }).then(
    () => 'it was taken',
    (error: Error) => error.message,
  )
  report.must(/ 503$/.test(refusal), `uploads are refused with 503: ${refusal}`)
  const status = await download(world)
  report.must(options.downloads.includes(status), `downloads answer ${options.downloads.join(' or ')}: ${status}`)
  const waiting = publisher.uploadRelease(release, { sizeBytes: 2_000_000, patienceMs: goneMs + backMs })
  await sleep(goneMs)
  const failed = (await control.stop()).filter((answer) => answer.status !== 200)
  report.must(failed.length === 0, `control requests go on: ${failed.length} failed`)

  devices.enter('the blobs came back')
  await options.heal(disk)
  const startedMs = performance.now()
  const isDone = await waiting.then(
    () => true,
    (error: Error) => report.note(`the upload that waited: ${error.message}`),
  )
  report.must(isDone === true, 'an upload that waited is completed')
  report.recovered(performance.now() - startedMs)
  report.mustAnswerAll(gone)
  report.mustStayFast(quiet, gone)
  await world.verify(report)
}

/** What a device is offered. */
async function download({ server, apps }: World): Promise<number> {
  const { appId, version } = takeFirst(apps).release
  const check = { app_id: appId, channel: 'stable', release_version: version, platform: 'android', arch }
  const answer = await fetch(`${server.baseUrl}/api/v1/patches/check`, { method: 'POST', body: JSON.stringify(check) })
  const { patch } = (await answer.json()) as PatchCheckResponse
  const response = await fetch(patch?.download_url ?? '')
  await response.arrayBuffer().catch(() => undefined)
  return response.status
}

export const blobDisk: Scenario[] = [
  {
    name: 'blobs-read-only',
    title: 'the disk of the blobs becomes read-only',
    run: (report) =>
      goWithout(report, {
        fail: (disk) => disk.setReadOnly(true),
        heal: (disk) => disk.setReadOnly(false),
        downloads: [200],
      }),
  },
  {
    name: 'blobs-detached',
    title: 'the disk of the blobs is detached: its folder is empty',
    run: (report) =>
      goWithout(report, { fail: (disk) => disk.detach(), heal: (disk) => disk.attach(), downloads: [200, 503] }),
  },
]
