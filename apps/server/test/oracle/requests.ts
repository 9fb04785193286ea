import type { ReleasePlatform } from '@godwit/contract'

/** What a device or a line of an import has told of, as it was sent. Lists of them are in the order of their commits. */
export type Request = {
  kind: 'check' | 'event' | 'import'
  clientId: string
  platform: ReleasePlatform
  arch: string
  /** Empty or null: not reported. */
  releaseVersion: string | null
  /** The server's clock. */
  receivedMs: number
  /** The clock of the device, or of the file; a check tells none. */
  toldMs: number | null
  /** The patch that runs, where the request says so: 0 is the base release. */
  running: number | null
  /** Of an event. */
  type: string | null
  patch: number | null
  /** The numbers of the release that were rolled back when it came. */
  rolledBack: number[]
}

export type Observation = {
  clientId: string
  timeMs: number
  platform: ReleasePlatform
  release: string | null
  /** 0: the base release. */
  patch: number
}

export type ReceivedEvent = { clientId: string; release: string; patch: number; type: string; receivedMs: number }

const hourMs = 3_600_000
export const dayMs = 24 * hourMs

/** What the requests make, as the definition of the metrics says it, without any thought of speed. */
export function readRequests(requests: Request[]): { observations: Observation[]; events: ReceivedEvent[] } {
  const taken: Request[] = []
  const observations: Observation[] = []
  for (const request of requests) {
    if (taken.some((other) => isRepeated(request, other))) continue
    observations.push({
      clientId: request.clientId,
      timeMs: timeOf(request),
      platform: request.platform,
      release: request.releaseVersion === '' ? null : request.releaseVersion,
      patch: findRunning(request, taken),
    })
    taken.push(request)
  }
  const events = taken.flatMap(({ kind, clientId, releaseVersion, patch, type, receivedMs }) =>
    kind === 'event'
      ? [{ clientId, release: releaseVersion ?? '', patch: patch ?? 0, type: type ?? '', receivedMs }]
      : [],
  )
  return { observations, events }
}

function isRepeated(request: Request, earlier: Request): boolean {
  if (request.kind !== earlier.kind || request.kind === 'check') return false
  const keys =
    request.kind === 'event'
      ? (['clientId', 'releaseVersion', 'patch', 'type', 'toldMs'] as const)
      : (['clientId', 'releaseVersion', 'running', 'platform', 'arch', 'toldMs'] as const)
  return keys.every((key) => request[key] === earlier[key])
}

function timeOf({ kind, toldMs, receivedMs }: Request): number {
  if (toldMs === null) return receivedMs
  if (kind === 'import') return toldMs
  return toldMs > receivedMs + dayMs || toldMs < receivedMs - 32 * dayMs ? receivedMs : toldMs
}

function findRunning(request: Request, before: Request[]): number {
  if (request.type === '__patch_install__') return request.patch ?? 0
  if (request.running !== null) return request.running
  if (request.kind === 'import') return 0
  const installs = before.filter(
    (other) =>
      other.type === '__patch_install__' &&
      other.clientId === request.clientId &&
      (other.releaseVersion ?? '') === (request.releaseVersion ?? '') &&
      !request.rolledBack.includes(other.patch ?? 0),
  )
  return installs.at(-1)?.patch ?? 0
}
