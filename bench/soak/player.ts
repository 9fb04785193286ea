import { setTimeout as sleep } from 'node:timers/promises'
import { createDeviceApi } from '../simulate/device-api.ts'
import { createFleet, type Truth } from './fleet.ts'

/** The devices, in a process of their own: what they cost is not the server's. */
export type PlayerTask = {
  baseUrl: string
  appId: string
  devices: number
  seed: number
  checksPerSecond: number
  seconds: number
}

export type PlayerMessage =
  | { kind: 'interval'; checks: number; events: number; p50Ms: number; p99Ms: number; errors: Record<string, number> }
  | { kind: 'end'; truth: Truth; late: number }

const connections = 128
const tickMs = 10
const intervalMs = 10_000

async function play(task: PlayerTask): Promise<void> {
  const api = createDeviceApi(task.baseUrl, connections)
  let times: number[] = []
  let events = 0
  let errors: Record<string, number> = {}
  const fleet = createFleet({
    ...task,
    api,
    onAnswer: (kind, latencyMs) => {
      if (kind === 'check') times.push(latencyMs)
      else events += 1
    },
  })
  const tell = () => {
    const sorted = times.toSorted((a, b) => a - b)
    const percentile = (part: number) => sorted[Math.floor(sorted.length * part)] ?? Number.NaN
    send({ kind: 'interval', checks: sorted.length, events, p50Ms: percentile(0.5), p99Ms: percentile(0.99), errors })
    times = []
    events = 0
    errors = {}
  }
  const telling = setInterval(tell, intervalMs)
  const startedAt = performance.now()
  const busy = new Set<Promise<void>>()
  let turn = 0
  let late = 0
  for (let elapsedMs = 0; elapsedMs < task.seconds * 1000; elapsedMs = performance.now() - startedAt) {
    const due = Math.floor((elapsedMs / 1000) * task.checksPerSecond)
    for (; turn < due; turn += 1) {
      if (busy.size >= connections) {
        // Nobody waits longer than a real device would: the rate goes down, and the report says so.
        late += 1
        await Promise.race(busy)
      }
      const launched = fleet
        .launch(turn)
        .catch((error: unknown) => {
          const reason = error instanceof Error ? error.message : String(error)
          errors[reason] = (errors[reason] ?? 0) + 1
        })
        .finally(() => busy.delete(launched))
      busy.add(launched)
    }
    await sleep(tickMs)
  }
  await Promise.all(busy)
  clearInterval(telling)
  tell()
  api.close()
  send({ kind: 'end', truth: fleet.listTruth(), late })
}

function send(message: PlayerMessage): void {
  process.send?.(message)
}

process.on('message', (task: PlayerTask) => {
  play(task).then(
    () => process.disconnect(),
    (error: unknown) => {
      console.error(error)
      process.exit(1)
    },
  )
})
