import type { Registry } from 'prom-client'
import type { MeasuredAnalyzer } from '../analysis/measured-analyzer.ts'
import type { Jobs } from '../jobs/jobs.ts'
import { addCounter, addGauge, addHistogram } from './prometheus-figures.ts'

/** A database that is away must not hold up the figures that tell of it. */
const countPatienceMs = 1000

export function registerJobs(registry: Registry, jobs: Pick<Jobs, 'count' | 'measure'>): void {
  const count = shareCalls(() => jobs.count())
  addGauge(
    registry,
    {
      name: 'godwit_jobs',
      help: 'Jobs of all instances, by queue and state. Those that failed for good are counted for as long as they are kept.',
      labelNames: ['queue', 'state'],
      aggregator: 'max',
    },
    async () =>
      (await count()).flatMap(({ queue, waiting, running, failed }) =>
        Object.entries({ waiting, running, failed }).map(([state, value]) => ({ labels: { queue, state }, value })),
      ),
  )
  addGauge(
    registry,
    {
      name: 'godwit_jobs_oldest_waiting_seconds',
      help: 'How long the job has waited that could have begun first, of all instances.',
      labelNames: ['queue'],
      aggregator: 'max',
    },
    async () => (await count()).map(({ queue, oldestWaitingSeconds: value }) => ({ labels: { queue }, value })),
  )
  addHistogram(
    registry,
    {
      name: 'godwit_job_duration_seconds',
      help: 'What the jobs of this process took. One that failed is tried again.',
      labelNames: ['queue', 'outcome'],
    },
    () => jobs.measure().map(({ queue, outcome, durations }) => ({ labels: { queue, outcome }, durations })),
  )
}

export function registerAnalyzer(registry: Registry, analyzer: Pick<MeasuredAnalyzer, 'measure'>): void {
  addGauge(
    registry,
    { name: 'godwit_analyses_running', help: 'Releases that are being analyzed.' },
    () => analyzer.measure().running,
  )
  addCounter(
    registry,
    {
      name: 'godwit_analyses_total',
      help: 'Analyses of this process: unanalyzable is the fault of the archive, failed is ours and is tried again.',
      labelNames: ['outcome'],
    },
    () => Object.entries(analyzer.measure().done).map(([outcome, value]) => ({ labels: { outcome }, value })),
  )
  addCounter(
    registry,
    { name: 'godwit_analysis_seconds_total', help: 'Time that those analyses took.' },
    () => analyzer.measure().seconds,
  )
}

/** Who asks while an answer is awaited gets the same one: requests must not pile up behind a database that hangs. */
function shareCalls<Result>(ask: () => Promise<Result>): () => Promise<Result> {
  let asked: Promise<Result> | undefined
  return async () => {
    asked ??= ask().finally(() => {
      asked = undefined
    })
    const { promise: late, reject } = Promise.withResolvers<never>()
    const timer = setTimeout(() => reject(new Error('took too long')), countPatienceMs)
    return await Promise.race([asked, late]).finally(() => clearTimeout(timer))
  }
}
