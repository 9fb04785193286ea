import { fork } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { cpus } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { publishPatches } from '../check/publish-patches.ts'
import { type Contestant, summarize, takeTurns } from '../check/rounds.ts'
import { adminKey, startGodwit } from '../check/servers.ts'
import { atTheEnd, runAndClose } from '../closing.ts'
import { percentile } from '../faults/devices.ts'
import { createLedger } from '../faults/ledger.ts'
import { clientOf, openPair } from '../faults/pair.ts'
import { measurePromotes } from '../faults/promotes.ts'
import { createPublisher } from '../faults/publisher.ts'
import { makeFolder, publishApps, takeFirst } from '../faults/world.ts'

/**
 * What more processes bring: checks per second of one box with one and with two, the load generator beside them; and how
 * soon devices of one instance are told what was promoted on another. Prints; nothing here fails on a figure.
 *
 *   npm run bench:scale -- [--only workers|promotes] [--rounds 5] [--promotes 200]
 */
const { values: options } = parseArgs({
  options: {
    only: { type: 'string' },
    rounds: { type: 'string', default: '5' },
    promotes: { type: 'string', default: '200' },
  },
})
const workers = [1, 2]
const devices = 20_000
const load = { connection: 'kept alive', connections: 50, roundMs: 2500, warmUpMs: 2000, pauseMs: 1000 } as const

await runAndClose(async () => {
  console.log(`Node ${process.version}, ${cpus().length} × ${cpus()[0]?.model ?? 'CPU'}\n`)
  if (options.only !== 'promotes') await benchWorkers()
  if (options.only !== 'workers') await benchPromotes()
})

async function benchWorkers(): Promise<void> {
  const folder = await makeFolder()
  const contestants: Contestant[] = []
  for (const count of workers) {
    const server = await startGodwit(join(folder, String(count)), { GODWIT_WORKERS: String(count) })
    atTheEnd(server.stop)
    const check = await publishPatches(`http://127.0.0.1:${server.port}`, adminKey)
    const bodies = Array.from({ length: devices }, () => JSON.stringify({ ...check, client_id: randomUUID() }))
    contestants.push({ name: String(count), server, bodies })
  }
  const generator = fork(new URL('../check/load.ts', import.meta.url).pathname)
  atTheEnd(async () => generator.kill())
  const rounds = Number(options.rounds)
  const samples = await takeTurns(generator, contestants, { ...load, rounds, sleeps: true })
  console.log(
    `Checks, ${load.connections} connections, medians of ${rounds} alternating rounds of ${load.roundMs / 1000} s.`,
  )
  console.log('The load generator takes its part of the same cores.\n')
  console.log('| processes | checks/s | p50 ms | p99 ms |\n|---:|---:|---:|---:|')
  for (const [name, taken] of samples) {
    const { rate, p50Ms, p99Ms } = summarize(taken)
    console.log(`| ${name} | ${rate.toFixed(0)} | ${p50Ms.toFixed(2)} | ${p99Ms.toFixed(2)} |`)
  }
}

async function benchPromotes(): Promise<void> {
  const [first, second] = (await openPair()).servers
  const publisher = createPublisher({ api: clientOf(first), ledger: createLedger() })
  const app = takeFirst(await publishApps(publisher, 1))
  const rows = []
  for (const [name, { baseUrl }] of [
    ['the same instance', first],
    ['the other instance', second],
  ] as const) {
    rows.push({ name, times: await measurePromotes(publisher, app, baseUrl, Number(options.promotes)) })
  }
  console.log(`\nFrom the answer to a promotion until devices are told, ${options.promotes} promotions each.\n`)
  console.log('| devices of | p50 ms | p99 ms | most ms |\n|---|---:|---:|---:|')
  for (const { name, times } of rows) {
    const figures = [percentile(times, 0.5), percentile(times, 0.99), Math.max(...times)]
    console.log(`| ${[name, ...figures.map((ms) => ms.toFixed(1))].join(' | ')} |`)
  }
}
