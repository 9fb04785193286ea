import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { LostBytesError } from '../publisher.ts'
import type { Report, Scenario, ScenarioOptions } from '../scenario.ts'
import { isServing, measureUntil, openServer, openWorld, takeFirst, type World } from '../world.ts'

/** The team and its devices work for at least, and at most, so long between two kills. */
const shortestMs = 300
const longestMs = 2500
const backMs = 15_000
const importLines = 3000
/** Embedded: the cluster is made, the schema migrated, the first account created. */
const firstStartMs = 3000

/** SIGKILL while everything that the service can do is being done. */
async function killAnywhere(report: Report, { rounds }: ScenarioOptions): Promise<void> {
  const world = await openWorld()
  const { server, devices, apps, ledger } = world
  const work = startWork(world)
  for (let round = 1; round <= rounds; round += 1) {
    devices.enter('the team worked')
    await sleep(shortestMs + Math.random() * (longestMs - shortestMs))
    devices.enter('it was killed and started')
    ledger.markKilled()
    await server.kill()
    const killedMs = performance.now()
    await server.start()
    const waited = await measureUntil(() => isServing(server, takeFirst(apps).app), backMs)
    report.must(waited < backMs, `serving within ${backMs / 1000} s of kill ${round}`)
    report.recovered(performance.now() - killedMs)
  }
  const { counts, lost } = await work.stop()
  report.row.lost.push(...lost)
  const done = Object.entries(counts).map(([what, times]) => `${times} ${what}`)
  report.note(`acknowledged between the kills: ${done.join(', ')}`)
  await world.verify(report)
}

/** Four at once, each doing one thing after the other for as long as it takes. */
function startWork({ publisher, apps, server, ledger }: World) {
  let isOver = false
  const counts: Record<string, number> = {}
  const lost: string[] = []
  const repeat = async (what: string, act: (turn: number) => Promise<unknown>) => {
    for (let turn = 0; !isOver; turn += 1) {
      try {
        await act(turn)
        counts[what] = (counts[what] ?? 0) + 1
      } catch (error) {
        if (error instanceof LostBytesError) lost.push(error.message)
        await sleep(50)
      }
    }
  }
  const pick = (turn: number) => apps[turn % apps.length] ?? takeFirst(apps)
  const publish = async (turn: number) => {
    const { app, release } = pick(turn)
    const patch = await publisher.publishPatch(app, release)
    await publisher.setRolledBack(release, patch, true)
    await publisher.setRolledBack(release, patch, false)
    if (turn % 2 === 0) await publisher.promote(app, release, patch, 'beta')
  }
  const createApp = async () => {
    const app = await publisher.createApp(`App ${randomUUID()}`)
    await publisher.createRelease(app, `1.0.0+${randomUUID().slice(0, 8)}`)
  }
  const upload = (turn: number) =>
    publisher.uploadRelease(pick(turn).release, { sizeBytes: 1_500_000, patienceMs: 30_000 })
  /** What was not acknowledged is sent again until it is: it must not be counted twice. */
  const importHistory = async (turn: number) => {
    const { appId, version } = pick(turn).release
    const clients = Array.from({ length: importLines }, () => randomUUID())
    const time = new Date(Date.now() - 3_600_000).toISOString()
    const line = { platform: 'android', arch: 'aarch64', release_version: version, time }
    const body = clients.map((client_id) => JSON.stringify({ client_id, ...line })).join('\n')
    while ((await server.api.importActivity({ params: { appId }, body }).catch(() => undefined)) === undefined) {
      await sleep(100)
    }
    for (const clientId of clients) ledger.imported.push({ clientId, appId })
  }
  const working = Promise.all([
    repeat('patches published, rolled back and forward', publish),
    repeat('apps with a release', createApp),
    repeat('uploads of 1.5 MB in chunks', upload),
    repeat(`imports of ${importLines} devices`, importHistory),
  ])
  return {
    stop: async () => {
      isOver = true
      await working
      return { counts, lost }
    },
  }
}

/** SIGKILL while it starts for the first time, then a start that must find its way on. */
async function killFirstStart(report: Report, { rounds }: ScenarioOptions): Promise<void> {
  for (let round = 1; round <= rounds; round += 1) {
    const server = await openServer({}, { isStarted: false })
    const starting = server.start().catch(() => undefined)
    await sleep(Math.random() * firstStartMs)
    await server.kill()
    await starting
    const startedMs = performance.now()
    await server.start()
    const { organizations } = await server.api.listOrganizations()
    report.must(organizations.length === 1, `one first account after round ${round}: ${organizations.length}`)
    report.recovered(performance.now() - startedMs)
    await server.remove()
  }
}

export const killedAnywhere: Scenario = {
  name: 'killed-at-work',
  title: 'SIGKILL at random moments of publishing, uploading, importing, counting',
  run: killAnywhere,
}

export const killedAtFirstStart: Scenario = {
  name: 'killed-at-first-start',
  title: 'SIGKILL at a random moment of the first start',
  run: killFirstStart,
}
