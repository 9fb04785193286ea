import type { Answer, Cell } from './questions.ts'

/** `coldMs`: the first time. `warmMs`: the median of those after it. */
export type Measured = { coldMs: number; warmMs: number; cells: string; answer: Answer }

/** How long a question takes, the first time and then `warmRuns` times more. `asCells` says what it found. */
export async function measureQuestion<Found>(
  ask: () => Promise<Found>,
  options: { warmRuns: number; asCells: (found: Found) => Cell[][]; asAnswer: (found: Found) => Answer },
): Promise<Measured> {
  const timesMs: number[] = []
  const found: Found[] = []
  for (let run = 0; run < 1 + options.warmRuns; run += 1) {
    const startedAt = performance.now()
    found.push(await ask())
    timesMs.push(performance.now() - startedAt)
  }
  const [coldMs = Number.NaN, ...warm] = timesMs
  const [first] = found as [Found]
  return { coldMs, warmMs: median(warm), cells: toText(options.asCells(first)), answer: options.asAnswer(first) }
}

function median(values: number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
}

/** The same rows are the same text, in whatever order they came. */
function toText(rows: Cell[][]): string {
  return rows
    .map((row) => JSON.stringify(row))
    .toSorted()
    .join('\n')
}

export function showMs(ms: number): string {
  return ms < 10 ? ms.toFixed(1) : ms.toFixed(0)
}
