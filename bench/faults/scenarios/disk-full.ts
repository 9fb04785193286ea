import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Phase } from '../devices.ts'
import type { Report, Scenario } from '../scenario.ts'
import { canMount, mountSmallDisk } from '../small-disk.ts'
import { makeFolder, measureUntil, openEmbeddedWorld, openWorld, takeFirst } from '../world.ts'

const quietMs = 4000
const fullMs = 6000
const backMs = 15_000
const onlyRoot = 'only root may mount the small disk'

/** The disk of the blobs. */
async function fillBlobs(report: Report): Promise<void> {
  if (!canMount()) return report.skip(onlyRoot)
  const disk = await mountSmallDisk(join(await makeFolder(), 'blobs'), 16)
  const world = await openWorld({ GODWIT_BLOBS: `file:${disk.folder}` })
  const { publisher, devices, apps } = world
  const { release } = takeFirst(apps)
  const quiet = devices.enter('all was well')
  await sleep(quietMs)

  await disk.fill(300_000)
  const full = devices.enter('the disk was full')
  const refusal = await publisher.uploadRelease(release, { sizeBytes: 1_000_000 }).then(
    () => 'it was taken',
    (error: Error) => error.message,
  )
  report.must(/ 503$/.test(refusal), `an upload that does not fit is refused with 503: ${refusal}`)
  const waiting = publisher.uploadRelease(release, { sizeBytes: 2_000_000, patienceMs: fullMs + backMs })
  await sleep(fullMs)
  await disk.empty()
  devices.enter('there was room again')
  const startedMs = performance.now()
  const isDone = await waiting.then(
    () => true,
    (error: Error) => report.note(`the upload that waited: ${error.message}`),
  )
  report.must(isDone === true, 'an upload that waited for room is completed')
  report.recovered(performance.now() - startedMs)
  const again = devices.enter('all was well again')
  await sleep(quietMs)
  report.mustAnswerAll(full)
  report.mustStayFast([quiet, again], full)
  await world.verify(report)
}

/** The disk on which events wait for a database that is away. */
async function fillSpool(report: Report): Promise<void> {
  if (!canMount()) return report.skip(onlyRoot)
  const dataDir = await makeFolder()
  const disk = await mountSmallDisk(join(dataDir, 'spool'), 16)
  const world = await openWorld({ GODWIT_DATA_DIR: dataDir })
  const { database, devices } = world
  await database.stop()
  devices.enter('the database was away')
  await sleep(2000)
  await disk.fill()
  const full = devices.enter('the disk of the spool was full')
  await sleep(fullMs)
  mustAnswerChecks(report, full)
  report.note(
    `${full.answered} checks answered, ${full.failed['HTTP 503 to an event'] ?? 0} events refused, ${full.events} taken`,
  )
  await disk.empty()
  const roomy = devices.enter('there was room again')
  const recovered = await measureUntil(async () => roomy.events > 0, backMs)
  report.recovered(recovered)
  report.must(recovered < backMs, 'events are taken again as soon as there is room')
  await sleep(1000)
  await database.heal()
  await sleep(1000)
  await world.verify(report)
}

/** The disk on which everything is, the embedded database too. */
async function fillAll(report: Report): Promise<void> {
  if (!canMount()) return report.skip(onlyRoot)
  const dataDir = await makeFolder()
  const disk = await mountSmallDisk(join(dataDir, 'all'), 256)
  const world = await openEmbeddedWorld({}, disk.folder)
  const { publisher, devices, apps } = world
  const { app, release } = takeFirst(apps)
  await disk.fill()
  const full = devices.enter('the disk of everything was full')
  const endsMs = performance.now() + fullMs
  let [done, refused] = [0, 0]
  while (performance.now() < endsMs) {
    await publisher.publishPatch(app, release).then(
      () => {
        done += 1
      },
      () => {
        refused += 1
      },
    )
    await sleep(50)
  }
  mustAnswerChecks(report, full)
  report.note(`with a full disk ${refused} patches were refused and ${done} published`)
  await disk.empty()
  devices.enter('there was room again')
  const recovered = await measureUntil(
    async () => (await publisher.publishPatch(app, release)).number > 0,
    backMs * 2,
    250,
  )
  report.recovered(recovered)
  report.must(recovered < backMs * 2, 'it writes again when there is room')
  await world.verify(report)
}

/** An event that cannot be kept is refused; a check never is. */
function mustAnswerChecks(report: Report, full: Phase): void {
  const others = Object.keys(full.failed).filter((reason) => reason !== 'HTTP 503 to an event')
  report.must(others.length === 0, `checks are answered, and events taken or refused with 503: ${others.join(', ')}`)
}

export const diskFull: Scenario[] = [
  { name: 'disk-full-blobs', title: 'the disk of the blobs is full', run: fillBlobs },
  { name: 'disk-full-spool', title: 'the database is away, and the disk of the spool is full', run: fillSpool },
  { name: 'disk-full', title: 'the disk with the embedded database and everything else is full', run: fillAll },
]
