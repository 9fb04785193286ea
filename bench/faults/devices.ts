import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { PatchCheckResponse, ReleasePlatform } from '@godwit/contract'
import { describeAnswer, type Place } from './answer-book.ts'
import { createAsker } from './http.ts'
import { keyOfRelease, type Ledger } from './ledger.ts'

const tickMs = 5
/** While instances are replaced, answers take up to a tenth of a second. */
const connectionsPerRate = 1 / 8
const leastConnections = 64
/** Not that of whoever attacks the service. Linux has it without being told. */
const deviceAddress = process.platform === 'linux' ? '127.0.0.2' : undefined
/** One check in so many comes with an event. */
const checksPerEvent = 10
const shownExamples = 5

/** What became of the requests between two points of a scenario. */
export type Phase = {
  name: string
  answered: number
  wrong: string[]
  failed: Record<string, number>
  events: number
  /** Of checks. */
  latenciesMs: number[]
}

export type Target = { appId: string; place: Place }

/** Devices that are each seen once: every check and every event can then be looked for by its client_id. */
export type Devices = {
  /** What follows is counted under this name. */
  enter: (name: string) => Phase
  phases: Phase[]
  stop: () => Promise<void>
}

export function startDevices(options: {
  baseUrl: () => string
  ledger: Ledger
  targets: () => Target[]
  checksPerSecond: number
}): Devices {
  const { baseUrl, ledger, targets, checksPerSecond } = options
  const connections = Math.max(leastConnections, checksPerSecond * connectionsPerRate)
  const asker = createAsker(connections, deviceAddress)
  const phases: Phase[] = []
  const enter = (name: string) => {
    const phase: Phase = { name, answered: 0, wrong: [], failed: {}, events: 0, latenciesMs: [] }
    phases.push(phase)
    return phase
  }
  const current = () => phases.at(-1) ?? enter('start')

  const check = async ({ appId, place }: Target) => {
    const phase = current()
    const clientId = randomUUID()
    const { version, ...where } = place
    const body = JSON.stringify({ app_id: appId, release_version: version, client_id: clientId, ...where })
    const sentMs = performance.now()
    try {
      const answer = await asker.ask('POST', `${baseUrl()}/api/v1/patches/check`, body)
      if (answer.status !== 200) throw new Error(`HTTP ${answer.status}${nameSender(answer)}`)
      const answeredMs = performance.now()
      const told = describeAnswer(JSON.parse(answer.body.toString('utf8')) as PatchCheckResponse)
      const right = ledger.answers.listRight(keyOfRelease(appId, version), place, sentMs, answeredMs)
      phase.answered += 1
      phase.latenciesMs.push(answer.durationMs)
      ledger.checks.push({ clientId, appId, atMs: answeredMs })
      if (!right.includes(told)) phase.wrong.push(`${version}: ${told} instead of ${right.join(' or ')}`)
    } catch (error) {
      ledger.uncertainChecks.push({ clientId, appId })
      countFailure(phase, error)
    }
  }
  const report = async ({ appId, place }: Target) => {
    const phase = current()
    const clientId = randomUUID()
    const { version: release_version, platform, arch } = place
    const timestamp = Math.floor(Date.now() / 1000)
    const what = { type: '__patch_install__', patch_number: 1, timestamp, message: null }
    const event = { app_id: appId, client_id: clientId, release_version, platform, arch, ...what }
    try {
      const answer = await asker.ask('POST', `${baseUrl()}/api/v1/patches/events`, JSON.stringify({ event }))
      if (answer.status !== 204) throw new Error(`HTTP ${answer.status}${nameSender(answer)} to an event`)
      phase.events += 1
      ledger.events.push({ clientId, appId })
    } catch (error) {
      ledger.uncertainEvents.push({ clientId, appId })
      countFailure(phase, error)
    }
  }

  let isOver = false
  const busy = new Set<Promise<void>>()
  const launch = (asking: Promise<void>) => {
    const tracked = asking.finally(() => busy.delete(tracked))
    busy.add(tracked)
  }
  const play = async () => {
    const startedMs = performance.now()
    for (let turn = 0; !isOver; ) {
      const due = Math.floor(((performance.now() - startedMs) / 1000) * checksPerSecond)
      const all = targets()
      // Whoever finds all connections busy is a device that does not ask: nobody queues for minutes.
      for (; turn < due; turn += 1) {
        const target = all[turn % all.length]
        if (target === undefined || busy.size >= connections * 2) continue
        launch(check(target))
        if (turn % checksPerEvent === 0) launch(report(target))
      }
      await sleep(tickMs)
    }
    await Promise.all(busy)
  }
  const playing = play()
  return {
    enter,
    phases,
    stop: async () => {
      isOver = true
      await playing
      asker.close()
    },
  }
}

/** The service explains its refusals in JSON; a load balancer has a page of its own. */
function nameSender({ body }: { body: Buffer }): string {
  return body.toString('latin1', 0, 1) === '{' ? '' : ' of a proxy'
}

function countFailure(phase: Phase, error: unknown): void {
  const reason = error instanceof Error ? error.message : String(error)
  phase.failed[reason] = (phase.failed[reason] ?? 0) + 1
}

export function percentile(values: number[], part: number): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length * part)] ?? Number.NaN
}

export function countFailed({ failed }: Phase): number {
  return Object.values(failed).reduce((sum, times) => sum + times, 0)
}

export function listFailures({ failed }: Phase): string {
  return Object.entries(failed)
    .slice(0, shownExamples)
    .map(([reason, times]) => `${times} × ${reason}`)
    .join('; ')
}

export const platforms: ReleasePlatform[] = ['android', 'ios']
export const arch = 'aarch64'
