import type { Devices, Phase } from './devices.ts'
import { countFailed, listFailures, percentile } from './devices.ts'
import type { Findings } from './verify.ts'

/** How many times the p99 of checks may be what it was in quiet. */
export const slowerTimes = 5
/** A machine with two cores that other programs use too has time slices of this order: below it nothing is held against us. */
export const busyMs = 15

export type ScenarioOptions = {
  /** How long what fails stays failed. */
  minutes: number
  /** How often what happens at a random moment is done. */
  rounds: number
}

export type Scenario = {
  name: string
  /** What is done to the service. */
  title: string
  run: (report: Report, options: ScenarioOptions) => Promise<void>
}

export type Row = {
  scenario: string
  title: string
  answered: number
  wrong: string[]
  lost: string[]
  recoveriesMs: number[]
  broken: string[]
  notes: string[]
  skipped: string | undefined
}

/** What a scenario found. A guarantee that was broken fails the suite; a note is for the reader. */
export function createReport(scenario: Pick<Scenario, 'name' | 'title'>) {
  const row: Row = {
    scenario: scenario.name,
    title: scenario.title,
    answered: 0,
    wrong: [],
    lost: [],
    recoveriesMs: [],
    broken: [],
    notes: [],
    skipped: undefined,
  }
  const addPhases = (phases: Phase[]) => {
    for (const { answered, wrong } of phases) {
      row.answered += answered
      row.wrong.push(...wrong)
    }
  }
  return {
    row,
    /** A guarantee. */
    must: (isKept: boolean, guarantee: string) => {
      if (!isKept) row.broken.push(guarantee)
    },
    note: (text: string) => {
      row.notes.push(text)
    },
    recovered: (durationMs: number) => {
      row.recoveriesMs.push(durationMs)
    },
    skip: (reason: string) => {
      row.skipped = reason
    },
    addDevices: ({ phases }: Devices) => addPhases(phases),
    addFindings: ({ lost, wrong, excusedChecks }: Findings) => {
      row.lost.push(...lost)
      row.wrong.push(...wrong)
      if (excusedChecks > 0) row.notes.push(`${excusedChecks} checks of the last 250 ms before a kill were not counted`)
    },
    /** In this phase every device must have been answered. */
    mustAnswerAll: (phase: Phase) => {
      const failed = countFailed(phase)
      if (failed > 0)
        row.broken.push(`${failed} requests of devices failed while ${phase.name}: ${listFailures(phase)}`)
    },
    /** The p99 of checks stays of the order that it had, and has afterwards: the machine itself has better and worse moments. */
    mustStayFast: (quiet: Phase[], phase: Phase) => {
      const before = percentile(
        quiet.flatMap(({ latenciesMs }) => latenciesMs),
        0.99,
      )
      const during = percentile(phase.latenciesMs, 0.99)
      const ratio = `p99 of checks ${before.toFixed(1)} → ${during.toFixed(1)} ms while ${phase.name}`
      row.notes.push(ratio)
      if (during > Math.max(before * slowerTimes, busyMs)) row.broken.push(`${ratio}, more than ${slowerTimes} times`)
    },
  }
}

export type Report = ReturnType<typeof createReport>

export function isBroken({ wrong, lost, broken }: Row): boolean {
  return wrong.length + lost.length + broken.length > 0
}
