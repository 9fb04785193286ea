import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ServerProcess } from '../../../apps/server/test/support/server-process.ts'
import type { Report, Scenario, ScenarioOptions } from '../scenario.ts'
import { isServing, measureUntil, openEmbeddedWorld, openServer, takeFirst } from '../world.ts'

const backMs = 15_000
const betweenMs = 1500
const kinds = ['PostgreSQL', 'Node', 'both'] as const

/** Kills one, the other, and both, again and again, under load. Each kind as often as there are rounds. */
async function killInTurn(report: Report, { rounds }: ScenarioOptions): Promise<void> {
  const world = await openEmbeddedWorld()
  const { server, devices, apps, publisher, ledger } = world
  const { app, release } = takeFirst(apps)
  const times = new Map<string, number[]>(kinds.map((kind) => [kind, []]))
  for (let round = 0; round < rounds * kinds.length; round += 1) {
    const kind = kinds[round % kinds.length] ?? 'both'
    devices.enter('all was well')
    await publisher.uploadRelease(release, { sizeBytes: 100_000 })
    await sleep(betweenMs * (0.5 + Math.random()))
    const during = devices.enter(`${kind} was killed`)
    if (kind !== 'Node') process.kill(postmasterPid(server), 'SIGKILL')
    if (kind !== 'PostgreSQL') {
      ledger.markKilled()
      await server.kill()
    }
    const killedMs = performance.now()
    if (kind !== 'PostgreSQL') await server.start()
    const waited = await measureUntil(() => isServing(server, app), backMs)
    const tookMs = waited === Number.POSITIVE_INFINITY ? waited : performance.now() - killedMs
    times.get(kind)?.push(tookMs)
    report.recovered(tookMs)
    report.must(tookMs < backMs, `back within ${backMs / 1000} s of the kill of ${kind}, round ${round + 1}`)
    if (kind === 'PostgreSQL') report.mustAnswerAll(during)
  }
  for (const [kind, all] of times) {
    const inTime = all.filter((tookMs) => tookMs < backMs).length
    report.note(
      `${kind} killed: serving again ${inTime} of ${all.length} times, after at most ${(Math.max(...all) / 1000).toFixed(1)} s`,
    )
  }
  await world.verify(report)
}

/** Two at once would destroy each other's database: the second one must not start, and the first must not notice. */
async function startTwice(report: Report): Promise<void> {
  const world = await openEmbeddedWorld()
  const { server, devices, apps } = world
  const together = devices.enter('a second one was started on its folder')
  const startedMs = performance.now()
  const refusal = await openServer({ GODWIT_DATA_DIR: server.dataDir }).then(
    () => undefined,
    (error: Error) => error.message,
  )
  const seconds = ((performance.now() - startedMs) / 1000).toFixed(1)
  report.must(refusal !== undefined, 'the second one refuses to start')
  report.must(/Another Godwit process is using/.test(refusal ?? ''), `it says why: ${refusal?.slice(0, 300)}`)
  report.must(/exited with 1\b/.test(refusal ?? ''), 'it exits with 1')
  report.note(`the second one gave up after ${seconds} s`)
  await sleep(2000)
  report.must(await isServing(server, takeFirst(apps).app), 'the first one goes on')
  report.mustAnswerAll(together)
  await world.verify(report)
}

export function postmasterPid({ dataDir }: ServerProcess): number {
  const file = join(dataDir, 'postgres', 'cluster', 'postmaster.pid')
  return existsSync(file) ? Number(readFileSync(file, 'utf8').split('\n')[0]) : Number.NaN
}

export const killed: Scenario = {
  name: 'killed',
  title: 'SIGKILL to the embedded PostgreSQL, to Node, to both',
  run: killInTurn,
}

export const startedTwice: Scenario = {
  name: 'started-twice',
  title: 'two services are started on one data folder',
  run: startTwice,
}
