import { Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client'
import type { ActivityStore } from '../activity/activity-store.ts'
import type { Recorder } from '../activity/recorder.ts'
import type { MeasuredAnalyzer } from '../analysis/measured-analyzer.ts'
import type { DeviceIndex } from '../devices/device-index.ts'
import type { Jobs } from '../jobs/jobs.ts'

/** What `/metrics` tells. Whoever has more to tell adds to it. */
export function createRegistry(sources: {
  recorder: Pick<Recorder, 'measure'>
  activityStore: Pick<ActivityStore, 'measure'>
  deviceIndex: Pick<DeviceIndex, 'measure'>
  analyzer: Pick<MeasuredAnalyzer, 'measure'>
  jobs: Pick<Jobs, 'countWaitingAnalyses'>
}): Registry {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  registerRecorder(registry, sources.recorder)
  registerActivityStore(registry, sources.activityStore)
  registerDeviceIndex(registry, sources.deviceIndex)
  registerAnalyzer(registry, sources)
  return registry
}

function registerRecorder(registry: Registry, { measure }: Pick<Recorder, 'measure'>): void {
  addCounter(
    registry,
    'godwit_observations_recorded_total',
    'Checks and new events that were taken, also those that were dropped later.',
    () => [{ value: measure().recorded }],
  )
  addCounter(
    registry,
    'godwit_observations_dropped_total',
    'Checks that were answered but not recorded: the backlog was full, the database refused them, or their release_version or client_id was longer than any.',
    () => Object.entries(measure().dropped).map(([reason, value]) => ({ labels: { reason }, value })),
    ['reason'],
  )
  addGauge(
    registry,
    'godwit_activity_backlog_bytes',
    'Observations and events in memory that are not durable yet.',
    () => measure().backlogBytes,
  )
  addGauge(
    registry,
    'godwit_activity_spool_bytes',
    'Observations and events on disk that the database has not taken yet.',
    () => measure().spoolBytes,
  )
}

function registerActivityStore(registry: Registry, { measure }: Pick<ActivityStore, 'measure'>): void {
  const gauge = (name: string, help: string, read: () => number) =>
    addGauge(registry, `godwit_activity_${name}`, help, read)
  const counter = (name: string, help: string, read: () => number) =>
    addCounter(registry, `godwit_activity_${name}_total`, help, () => [{ value: read() }])
  counter('compactions', 'How often observations were compacted.', () => measure().compactions)
  counter('compacted_observations', 'Observations that were compacted.', () => measure().compactedObservations)
  counter(
    'uncounted_observations',
    'Observations that were not counted: of more release versions or patch numbers than an app may have.',
    () => measure().dropped,
  )
  gauge('lag_seconds', 'Age of the oldest observations that are not compacted.', () => measure().lagMs / 1000)
  gauge('bitmap_bytes', 'Bitmaps in memory.', () => measure().unitBytes)
  gauge('device_bytes', 'What is known of each device, in memory.', () => measure().stateBytes)
  gauge('questions', 'Questions of metrics that wait for their answer.', () => measure().questions)
}

function registerDeviceIndex(registry: Registry, { measure }: Pick<DeviceIndex, 'measure'>): void {
  addGauge(registry, 'godwit_device_index_apps', 'Apps that there are.', () => measure().apps)
  addGauge(registry, 'godwit_device_index_loaded_apps', 'Apps whose answers are in memory.', () => measure().loadedApps)
  addGauge(registry, 'godwit_device_index_bytes', 'What the answers in memory take.', () => measure().sizeBytes)
  addCounter(
    registry,
    'godwit_device_index_loads_total',
    'How often the answers of an app were read from the database.',
    () => [{ value: measure().loads }],
  )
}

function registerAnalyzer(
  registry: Registry,
  { analyzer, jobs }: { analyzer: Pick<MeasuredAnalyzer, 'measure'>; jobs: Pick<Jobs, 'countWaitingAnalyses'> },
): void {
  addGauge(registry, 'godwit_analyses_running', 'Releases that are being analyzed.', () => analyzer.measure().running)
  addGauge(registry, 'godwit_analyses_waiting', 'Releases that wait for their analysis, of all instances.', () =>
    jobs.countWaitingAnalyses(),
  )
  addCounter(
    registry,
    'godwit_analyses_total',
    'Analyses of this process: unanalyzable is the fault of the archive, failed is ours and is tried again.',
    () => Object.entries(analyzer.measure().done).map(([outcome, value]) => ({ labels: { outcome }, value })),
    ['outcome'],
  )
  addCounter(registry, 'godwit_analysis_seconds_total', 'Time that those analyses took.', () => [
    { value: analyzer.measure().seconds },
  ])
}

type Sample = { labels?: Record<string, string>; value: number }

/** A counter that is kept elsewhere, as a plain number: to count here costs more than what is counted. */
export function addCounter(
  registry: Registry,
  name: string,
  help: string,
  read: () => Sample[],
  labelNames: string[] = [],
): void {
  const counter: Counter = new Counter({
    name,
    help,
    labelNames,
    registers: [registry],
    collect: () => {
      counter.reset()
      for (const { labels = {}, value } of read()) counter.inc(labels, value)
    },
  })
}

/** One that cannot be read now keeps its last value. */
export function addGauge(registry: Registry, name: string, help: string, read: () => number | Promise<number>): void {
  const collect = async () => {
    const value = await Promise.resolve(read()).catch(() => undefined)
    if (value !== undefined) gauge.set(value)
  }
  const gauge: Gauge = new Gauge({ name, help, registers: [registry], collect })
}
