import { collectDefaultMetrics, Registry } from 'prom-client'
import packageJson from '../../../../package.json' with { type: 'json' }
import type { ActivityStore } from '../activity/activity-store.ts'
import type { Recorder } from '../activity/recorder.ts'
import type { MeasuredAnalyzer } from '../analysis/measured-analyzer.ts'
import type { MeasuredBlobStore } from '../blobs/measured-blob-store.ts'
import type { DatabaseHealth } from '../db/database-health.ts'
import type { DatabaseMeter } from '../db/database-meter.ts'
import type { Replica } from '../db/open-replica.ts'
import type { DeviceIndex } from '../devices/device-index.ts'
import type { RequestDurations } from '../http/request-durations.ts'
import type { Jobs } from '../jobs/jobs.ts'
import { registerActivityStore, registerDeviceIndex, registerRecorder } from './prometheus-devices.ts'
import { addGauge, addHistogram } from './prometheus-figures.ts'
import { registerBlobs, registerDatabase, registerReplica } from './prometheus-storage.ts'
import { registerAnalyzer, registerJobs } from './prometheus-work.ts'

/** Gauges that end in `_total`, as only counters may: a sum over their types says the same. */
const misnamed = ['nodejs_active_handles_total', 'nodejs_active_requests_total', 'nodejs_active_resources_total']

/** What a process can tell before it has a database. Made once: each watches the event loop for as long as it lives. */
export function createProcessRegistry(databaseHealth: Pick<DatabaseHealth, 'fault'>): Registry {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  for (const name of misnamed) registry.removeSingleMetric(name)
  registerBuild(registry)
  addGauge(
    registry,
    { name: 'godwit_database_up', help: 'Whether the database answers this process.', aggregator: 'min' },
    () => (databaseHealth.fault() === undefined ? 1 : 0),
  )
  return registry
}

/** What `/metrics` tells. Whoever has more to tell adds to it. */
export function createRegistry(sources: {
  process: Registry
  requests: Pick<RequestDurations, 'list'>
  recorder: Pick<Recorder, 'measure'>
  activityStore: Pick<ActivityStore, 'measure'>
  deviceIndex: Pick<DeviceIndex, 'measure'>
  database: Pick<DatabaseMeter, 'measure'>
  replica: Pick<Replica, 'health'> | undefined
  blobs: Pick<MeasuredBlobStore, 'measure'>
  analyzer: Pick<MeasuredAnalyzer, 'measure'>
  jobs: Pick<Jobs, 'count' | 'measure'>
}): Registry {
  const registry = new Registry()
  registerRequests(registry, sources.requests)
  registerRecorder(registry, sources.recorder)
  registerActivityStore(registry, sources.activityStore)
  registerDeviceIndex(registry, sources.deviceIndex)
  registerDatabase(registry, sources.database)
  if (sources.replica !== undefined) {
    registerReplica(registry, sources.replica.health, {
      devices: () => sources.deviceIndex.measure().replicaReads,
      metrics: () => sources.activityStore.measure().replicaReads,
    })
  }
  registerBlobs(registry, sources.blobs)
  registerJobs(registry, sources.jobs)
  registerAnalyzer(registry, sources.analyzer)
  return Registry.merge([sources.process, registry])
}

function registerBuild(registry: Registry): void {
  const labels = { version: packageJson.version, node_version: process.version }
  addGauge(
    registry,
    {
      name: 'godwit_build_info',
      help: 'Always 1: the labels say what runs.',
      labelNames: Object.keys(labels),
      aggregator: 'first',
    },
    () => [{ labels, value: 1 }],
  )
}

function registerRequests(registry: Registry, { list }: Pick<RequestDurations, 'list'>): void {
  addHistogram(
    registry,
    {
      name: 'godwit_http_request_duration_seconds',
      help: 'What requests took until they were answered, by template of the path and class of the status.',
      labelNames: ['method', 'route', 'status'],
    },
    () => list().map(({ durations, ...labels }) => ({ labels, durations })),
  )
}
