import type { PatchCheckResponse, ReleasePlatform } from '@godwit/contract'

/** Where a device stands. */
export type Place = { version: string; channel: string; platform: ReleasePlatform; arch: string }

/** A patch as its team knows it: only what was acknowledged. */
export type PatchState = {
  id: number
  number: number
  channel: string | null
  isRolledBack: boolean
  artifacts: { platform: ReleasePlatform; arch: string; hash: string }[]
}

/** A change that was asked for. Until it is acknowledged or refused, nobody can know whether it happened. */
export type Change = { acknowledge: (atMs: number) => void; refuse: (atMs: number) => void }

/** Every answer that devices of an app may be given, and when. Times are of `performance.now()`. */
export type AnswerBook = {
  /** From now on devices may also be told this of a release. */
  begin: (release: string, patches: PatchState[], atMs: number) => Change
  /** What the team knows of the release now. */
  read: (release: string) => PatchState[]
  /** What may be answered to a check that was sent and answered at these times. */
  listRight: (release: string, place: Place, sentMs: number, answeredMs: number) => string[]
}

type Period = { patches: PatchState[]; fromMs: number; untilMs: number; answers: Map<string, string> }

/** `graceMs`: how long the former answer may still be given after a change was acknowledged. */
export function createAnswerBook(graceMs = 1000): AnswerBook {
  const releases = new Map<string, Period[]>()

  const list = (release: string) => releases.get(release) ?? []
  return {
    begin: (release, patches, atMs) => {
      const earlier = list(release).filter(({ untilMs }) => untilMs > atMs - 60_000)
      const next: Period = { patches, fromMs: atMs, untilMs: Number.POSITIVE_INFINITY, answers: new Map() }
      releases.set(release, [...earlier, next])
      return {
        acknowledge: (ackMs) => {
          for (const period of earlier) period.untilMs = Math.min(period.untilMs, ackMs + graceMs)
        },
        refuse: (refusedMs) => {
          next.untilMs = Math.min(next.untilMs, refusedMs + graceMs)
        },
      }
    },
    read: (release) => list(release).findLast(({ untilMs }) => untilMs === Number.POSITIVE_INFINITY)?.patches ?? [],
    listRight: (release, place, sentMs, answeredMs) => {
      const periods = list(release).filter(({ fromMs, untilMs }) => fromMs <= answeredMs && untilMs >= sentMs)
      return periods.length === 0 ? [answerFor([], place)] : periods.map((period) => recallAnswer(period, place))
    },
  }
}

function recallAnswer({ patches, answers }: Period, place: Place): string {
  const key = `${place.channel} ${place.platform} ${place.arch}`
  const answer = answers.get(key) ?? answerFor(patches, place)
  answers.set(key, answer)
  return answer
}

/** Written from the specification, not from the server: the highest number on the channel that has bytes for the place. */
function answerFor(patches: PatchState[], { channel, platform, arch }: Place): string {
  const offers = patches
    .filter((patch) => patch.channel === channel && !patch.isRolledBack)
    .flatMap(({ number, artifacts }) => artifacts.map((artifact) => ({ number, ...artifact })))
    .filter((artifact) => artifact.platform === platform && artifact.arch === arch)
    .toSorted((a, b) => b.number - a.number)
  const rolledBack = patches.filter((patch) => patch.isRolledBack).map(({ number }) => number)
  return formatAnswer(offers[0], rolledBack)
}

export function describeAnswer(response: PatchCheckResponse): string {
  return formatAnswer(response.patch_available ? response.patch : undefined, response.rolled_back_patch_numbers ?? [])
}

function formatAnswer(offer: { number: number; hash: string } | undefined, rolledBack: number[]): string {
  const offered = offer === undefined ? 'nothing' : `patch ${offer.number} (${offer.hash.slice(0, 8)})`
  return `${offered}, rolled back: ${rolledBack.toSorted((a, b) => a - b).join(', ') || 'none'}`
}
