/** What a device has installed: per release the numbers of its patches, the latest last. */
export type Installs = [release: string | null, patches: number[]][]

/** A device is remembered for so many of its latest installs on a release, and on so many of its latest releases. */
const maxInstalls = 16
const maxReleases = 8
/** Of an app. Beyond them a new history is only the last install: anybody can report installs, in any order. */
const maxStates = 100_000

/**
 * Devices go through few different histories of installs, so each history is kept once and a device names it by number.
 * Number 0 is a device without installs.
 */
export type InstallStates = {
  /** The state of a device in `state` after it installed the patch. */
  install: (state: number, release: string | null, patch: number) => number
  /** The last installed patch that is not rolled back; 0: the base release. */
  findRunning: (state: number, release: string | null, rolledBack: readonly number[]) => number
  count: () => number
  /** What all of them take in memory, about. */
  sizeBytes: () => number
  get: (state: number) => Installs
  /** Adds the state that was stored under the next number. */
  load: (installs: Installs) => void
}

export function createInstallStates(): InstallStates {
  const states: Installs[] = [[]]
  const numbers = new Map<string, number>([[JSON.stringify([]), 0]])
  const next = new Map<string, number>()
  let keyChars = 0

  const add = (key: string, installs: Installs): number => {
    keyChars += key.length
    numbers.set(key, states.length)
    return states.push(installs) - 1
  }
  const intern = (installs: Installs): number => {
    const key = JSON.stringify(installs)
    const known = numbers.get(key)
    if (known !== undefined) return known
    const last = installs.at(-1)
    if (states.length < maxStates || last === undefined) return add(key, installs)
    const only: Installs = [[last[0], last[1].slice(-1)]]
    const onlyKey = JSON.stringify(only)
    return numbers.get(onlyKey) ?? add(onlyKey, only)
  }
  const get = (state: number) => states[state] ?? []
  return {
    install: (state, release, patch) => {
      const key = `${state}:${patch}:${release ?? '\0'}`
      let after = next.get(key)
      if (after === undefined) {
        const patches = (get(state).find(([version]) => version === release)?.[1] ?? []).filter((one) => one !== patch)
        const others = get(state).filter(([version]) => version !== release)
        const latest: Installs[number] = [release, [...patches, patch].slice(-maxInstalls)]
        after = intern([...others, latest].slice(-maxReleases))
        if (next.size >= maxStates) next.clear()
        next.set(key, after)
      }
      return after
    },
    findRunning: (state, release, rolledBack) => {
      if (state === 0) return 0
      const patches = get(state).find(([version]) => version === release)?.[1] ?? []
      return patches.findLast((patch) => !rolledBack.includes(patch)) ?? 0
    },
    count: () => states.length,
    sizeBytes: () => keyChars * 4 + states.length * 300 + next.size * 200,
    get,
    load: (installs) => void add(JSON.stringify(installs), installs),
  }
}
