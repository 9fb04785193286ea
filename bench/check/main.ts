import { type ChildProcess, fork } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { PatchCheckResponse } from '@godwit/contract'
import type { Outcome, Round } from './load.ts'
import { publishPatches } from './publish-patches.ts'
import { adminKey, type Server, startBareServer, startGodwit } from './servers.ts'

/**
 * Checks per second of the device door, beside a bare node:http server that parses the same body and answers the same
 * bytes. The two take turns within one run, so that whatever else the machine does hits both. Nothing here fails on a
 * time: a figure is for a person to read.
 */
const rounds = 5
const roundMs = 2500
const warmUpMs = 2000
const connections = 50
const devices = 20_000
const kinds = ['kept alive', 'new'] as const

type Sample = Outcome & { serverCpuSeconds: number }
type Contestant = { name: string; server: Server }

const closers: (() => Promise<unknown>)[] = []
const closeAll = async () => {
  for (const close of closers.splice(0).toReversed()) await close()
}
// The servers are processes of their own, and would outlive us.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => closeAll().then(() => process.exit(1)))
try {
  await bench()
} finally {
  await closeAll()
}

async function bench(): Promise<void> {
  const dataDir = await mkdtemp(join(tmpdir(), 'godwit-bench-'))
  closers.push(() => rm(dataDir, { recursive: true, force: true }))
  const godwit = await startGodwit(dataDir)
  closers.push(godwit.stop)
  const baseUrl = `http://127.0.0.1:${godwit.port}`
  const check = await publishPatches(baseUrl, adminKey)
  const bodies = Array.from({ length: devices }, () => JSON.stringify({ ...check, client_id: randomUUID() }))
  const answer = await ask(baseUrl, bodies[0] ?? '')
  const bare = await startBareServer(answer)
  closers.push(bare.stop)
  const generator = fork(new URL('./load.ts', import.meta.url).pathname)
  closers.push(async () => generator.kill())

  const contestants = [
    { name: 'bare node:http', server: bare },
    { name: 'Godwit', server: godwit },
  ]
  console.log(`Node ${process.version}, ${cpus().length} × ${cpus()[0]?.model ?? 'CPU'}, ${connections} connections,`)
  console.log(
    `medians of ${rounds} alternating rounds of ${roundMs / 1000} s. The answer has ${answer.length} bytes.\n`,
  )
  console.log('| connection | server | checks/s | ratio | p50 ms | p99 ms | ratio | server CPU µs/check |')
  console.log('|---|---|---:|---:|---:|---:|---:|---:|')
  for (const connection of kinds) {
    const samples = await takeTurns(generator, contestants, { connection, bodies })
    const [base, ...others] = contestants.map(({ name }) => ({ name, ...summarize(samples.get(name) ?? []) }))
    for (const row of base === undefined ? [] : [base, ...others]) {
      const figures = [row.rate.toFixed(0), ratio(row.rate, base?.rate), row.p50Ms.toFixed(2), row.p99Ms.toFixed(2)]
      const more = [ratio(row.p99Ms, base?.p99Ms), row.serverCpuUs.toFixed(1)]
      console.log(`| ${[connection, row.name, ...figures, ...more].join(' | ')} |`)
    }
  }
}

async function takeTurns(
  generator: ChildProcess,
  contestants: Contestant[],
  options: { connection: Round['connection']; bodies: string[] },
): Promise<Map<string, Sample[]>> {
  const samples = new Map<string, Sample[]>(contestants.map(({ name }) => [name, []]))
  for (const { server } of contestants) await load(generator, server, { ...options, durationMs: warmUpMs })
  for (let round = 0; round < rounds; round += 1) {
    // Whoever goes first may find the machine in another state, so the order changes.
    for (const { name, server } of round % 2 === 0 ? contestants : contestants.toReversed()) {
      samples.get(name)?.push(await load(generator, server, { ...options, durationMs: roundMs }))
    }
  }
  return samples
}

async function load(
  generator: ChildProcess,
  server: Server,
  options: Pick<Round, 'connection' | 'bodies' | 'durationMs'>,
): Promise<Sample> {
  const before = await server.readCpuSeconds()
  generator.send({ port: server.port, connections, maxChecks: 500_000, ...options } satisfies Round)
  const outcome = await waitForOutcome(generator)
  const after = await server.readCpuSeconds()
  return { ...outcome, serverCpuSeconds: before === undefined || after === undefined ? Number.NaN : after - before }
}

function waitForOutcome(generator: ChildProcess): Promise<Outcome> {
  return new Promise((resolve, reject) => {
    const fail = () => reject(new Error('the load generator failed'))
    generator.once('exit', fail)
    generator.once('message', (outcome) => {
      generator.off('exit', fail)
      resolve(outcome as Outcome)
    })
  })
}

function summarize(samples: Sample[]) {
  return {
    rate: median(samples.map(({ checks, seconds }) => checks / seconds)),
    p50Ms: median(samples.map(({ p50Ms }) => p50Ms)),
    p99Ms: median(samples.map(({ p99Ms }) => p99Ms)),
    serverCpuUs: median(samples.map(({ serverCpuSeconds, checks }) => (serverCpuSeconds / checks) * 1e6)),
  }
}

function median(values: number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
}

function ratio(value: number, base: number | undefined): string {
  return base === undefined || base === value ? '' : (value / base).toFixed(2)
}

/** The answer that both servers give. It must be an offer: answering that there is none would be easier. */
async function ask(baseUrl: string, body: string): Promise<string> {
  const response = await fetch(`${baseUrl}/api/v1/patches/check`, { method: 'POST', body })
  const answer = await response.text()
  if (!PatchCheckResponse.parse(JSON.parse(answer)).patch_available) throw new Error(`no patch is offered: ${answer}`)
  return answer
}
