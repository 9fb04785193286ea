import type { ChildProcess } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Outcome, Round } from './load.ts'
import type { Server } from './servers.ts'

export type Sample = Outcome & { serverCpuSeconds: number; mainCpuSeconds: number }
/** A server, and the bodies that it is sent in turn. */
export type Contestant = { name: string; server: Server; bodies: string[] }

export type RoundOptions = Pick<Round, 'connection' | 'connections' | 'sleeps'> & {
  rounds: number
  roundMs: number
  warmUpMs: number
  /** For what a server does after its answers, so that the next one does not pay for it. */
  pauseMs?: number
}

/** Loads the contestants one after the other, again and again. */
export async function takeTurns(
  generator: ChildProcess,
  contestants: Contestant[],
  options: RoundOptions,
): Promise<Map<string, Sample[]>> {
  const { rounds, roundMs, warmUpMs, pauseMs = 0, ...round } = options
  const samples = new Map<string, Sample[]>(contestants.map(({ name }) => [name, []]))
  for (const contestant of contestants) await load(generator, contestant, { ...round, durationMs: warmUpMs })
  for (let turn = 0; turn < rounds; turn += 1) {
    // Whoever goes first may find the machine in another state, so the order changes.
    for (const contestant of turn % 2 === 0 ? contestants : contestants.toReversed()) {
      await sleep(pauseMs)
      samples.get(contestant.name)?.push(await load(generator, contestant, { ...round, durationMs: roundMs }))
    }
  }
  return samples
}

async function load(
  generator: ChildProcess,
  { server, bodies }: Contestant,
  options: Pick<Round, 'connection' | 'connections' | 'sleeps' | 'durationMs'>,
): Promise<Sample> {
  const readCpu = () => Promise.all([server.readCpuSeconds(), server.readMainCpuSeconds()])
  const before = await readCpu()
  generator.send({ port: server.port, bodies, maxChecks: 500_000, ...options } satisfies Round)
  const outcome = await waitForOutcome(generator)
  const [serverCpuSeconds, mainCpuSeconds] = (await readCpu()).map(
    (seconds, index) => (seconds ?? Number.NaN) - (before[index] ?? Number.NaN),
  ) as [number, number]
  return { ...outcome, serverCpuSeconds, mainCpuSeconds }
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

export function summarize(samples: Sample[]) {
  return {
    rate: median(samples.map(({ checks, seconds }) => checks / seconds)),
    p50Ms: median(samples.map(({ p50Ms }) => p50Ms)),
    p99Ms: median(samples.map(({ p99Ms }) => p99Ms)),
    serverCpuUs: median(samples.map(({ serverCpuSeconds, checks }) => (serverCpuSeconds / checks) * 1e6)),
    mainCpuUs: median(samples.map(({ mainCpuSeconds, checks }) => (mainCpuSeconds / checks) * 1e6)),
  }
}

/** The median of what each turn says by itself: what else the machine does hits both rounds of a turn alike, or nearly. */
export function compareTurns(samples: Sample[], base: Sample[], read: (sample: Sample) => number): number {
  return median(samples.map((sample, turn) => read(sample) / read(base[turn] ?? sample)))
}

function median(values: number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
}

export function ratio(value: number, base: number | undefined): string {
  return base === undefined || base === value ? '' : (value / base).toFixed(2)
}
