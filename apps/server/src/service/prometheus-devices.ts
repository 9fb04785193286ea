import type { Registry } from 'prom-client'
import type { ActivityStore } from '../activity/activity-store.ts'
import type { Recorder } from '../activity/recorder.ts'
import type { DeviceIndex } from '../devices/device-index.ts'
import { addCounter, addGauge } from './prometheus-figures.ts'

export function registerRecorder(registry: Registry, { measure }: Pick<Recorder, 'measure'>): void {
  addCounter(
    registry,
    {
      name: 'godwit_observations_recorded_total',
      help: 'Checks and new events that were taken, also those that were dropped later.',
    },
    () => measure().recorded,
  )
  addCounter(
    registry,
    {
      name: 'godwit_observations_dropped_total',
      help: 'Checks that were answered but not recorded: the backlog was full, the database refused them, or their release_version or client_id was longer than any.',
      labelNames: ['reason'],
    },
    () => Object.entries(measure().dropped).map(([reason, value]) => ({ labels: { reason }, value })),
  )
  addGauge(
    registry,
    {
      name: 'godwit_activity_backlog_bytes',
      help: 'Observations and events in memory that are not durable yet.',
    },
    () => measure().backlogBytes,
  )
  addGauge(
    registry,
    {
      name: 'godwit_activity_spool_bytes',
      help: 'Observations and events on disk that the database has not taken yet.',
    },
    () => measure().spoolBytes,
  )
}

export function registerActivityStore(registry: Registry, { measure }: Pick<ActivityStore, 'measure'>): void {
  const gauge = (name: string, help: string, read: () => number) =>
    addGauge(registry, { name: `godwit_activity_${name}`, help }, read)
  const counter = (name: string, help: string, read: () => number) =>
    addCounter(registry, { name: `godwit_activity_${name}_total`, help }, read)
  counter('compactions', 'How often observations were compacted.', () => measure().compactions)
  counter('compacted_observations', 'Observations that were compacted.', () => measure().compactedObservations)
  counter(
    'uncounted_observations',
    'Observations that were not counted: of more release versions or patch numbers than an app may have.',
    () => measure().dropped,
  )
  addGauge(
    registry,
    {
      name: 'godwit_activity_lag_seconds',
      help: 'Age of the oldest observations that are not compacted.',
      aggregator: 'max',
    },
    () => measure().lagMs / 1000,
  )
  gauge('bitmap_bytes', 'Bitmaps in memory.', () => measure().unitBytes)
  gauge('device_bytes', 'What is known of each device, in memory.', () => measure().stateBytes)
  gauge('questions', 'Questions of metrics that wait for their answer.', () => measure().questions)
}

export function registerDeviceIndex(registry: Registry, { measure }: Pick<DeviceIndex, 'measure'>): void {
  addGauge(
    registry,
    { name: 'godwit_device_index_apps', help: 'Apps that there are.', aggregator: 'max' },
    () => measure().apps,
  )
  addGauge(
    registry,
    { name: 'godwit_device_index_loaded_apps', help: 'Apps whose answers are in memory.' },
    () => measure().loadedApps,
  )
  addGauge(
    registry,
    { name: 'godwit_device_index_bytes', help: 'What the answers in memory take.' },
    () => measure().sizeBytes,
  )
  addGauge(
    registry,
    {
      name: 'godwit_device_index_age_seconds',
      help: 'Time since the index was last known to agree with the database.',
      aggregator: 'max',
    },
    () => measure().ageMs / 1000,
  )
  addCounter(
    registry,
    {
      name: 'godwit_device_index_loads_total',
      help: 'How often the answers of an app were read from the database.',
    },
    () => measure().loads,
  )
}
