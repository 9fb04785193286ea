import type { Registry } from 'prom-client'
import type { MeasuredBlobStore } from '../blobs/measured-blob-store.ts'
import type { DatabaseHealth } from '../db/database-health.ts'
import type { DatabaseMeter } from '../db/database-meter.ts'
import type { ReplicaReads } from '../db/open-replica.ts'
import { addCounter, addGauge, addHistogram } from './prometheus-figures.ts'

export function registerDatabase(registry: Registry, { measure }: Pick<DatabaseMeter, 'measure'>): void {
  addGauge(
    registry,
    {
      name: 'godwit_database_pool_connections',
      help: 'Open connections to the database, by state: idle or used.',
      labelNames: ['state'],
    },
    () => {
      const { open, idle } = measure().pool
      return [
        { labels: { state: 'idle' }, value: idle },
        { labels: { state: 'used' }, value: open - idle },
      ]
    },
  )
  addGauge(
    registry,
    { name: 'godwit_database_pool_max_connections', help: 'How many connections there may be.' },
    () => measure().pool.max,
  )
  addGauge(
    registry,
    { name: 'godwit_database_pool_waiting', help: 'Who waits for a connection.' },
    () => measure().pool.waiting,
  )
  addHistogram(
    registry,
    {
      name: 'godwit_database_acquire_duration_seconds',
      help: 'What a statement or transaction waited for a connection.',
    },
    () => [{ durations: measure().waits }],
  )
  addCounter(
    registry,
    {
      name: 'godwit_database_acquire_failures_total',
      help: 'How often there was no connection: the database is away, or all were used for too long.',
    },
    () => measure().failedWaits,
  )
  addHistogram(
    registry,
    { name: 'godwit_database_query_duration_seconds', help: 'What statements took, also those that failed.' },
    () => [{ durations: measure().queries }],
  )
  addCounter(
    registry,
    {
      name: 'godwit_database_query_errors_total',
      help: 'Statements that failed, by the class of their SQLSTATE; none: the database did not answer.',
      labelNames: ['sqlstate_class'],
    },
    () => {
      const errors = new Map([['none', 0], ...measure().errors])
      return [...errors].map(([sqlstateClass, value]) => ({ labels: { sqlstate_class: sqlstateClass }, value }))
    },
  )
}

export function registerReplica(
  registry: Registry,
  health: Pick<DatabaseHealth, 'fault'>,
  readers: Record<string, () => Readonly<ReplicaReads> | undefined>,
): void {
  addGauge(
    registry,
    {
      name: 'godwit_replica_up',
      help: 'Whether the read replica of the database answers this process.',
      aggregator: 'min',
    },
    () => (health.fault() === undefined ? 1 : 0),
  )
  addCounter(
    registry,
    {
      name: 'godwit_replica_reads_total',
      help: 'Apps read of the replica, for devices or metrics: used, behind (it lacked the last change) or failed. The primary is read for the last two.',
      labelNames: ['reader', 'result'],
    },
    () =>
      Object.entries(readers).flatMap(([reader, read]) =>
        Object.entries(read() ?? {}).map(([result, value]) => ({ labels: { reader, result }, value })),
      ),
  )
}

export function registerBlobs(registry: Registry, { measure }: Pick<MeasuredBlobStore, 'measure'>): void {
  addHistogram(
    registry,
    {
      name: 'godwit_blob_operation_duration_seconds',
      help: 'What operations on the blob store took: write without waiting for its source, read until the first bytes.',
      labelNames: ['operation'],
    },
    () => measure().operations.map(({ operation, durations }) => ({ labels: { operation }, durations })),
  )
  addCounter(
    registry,
    {
      name: 'godwit_blob_errors_total',
      help: 'Operations that the blob store failed at.',
      labelNames: ['operation'],
    },
    () => measure().operations.map(({ operation, errors: value }) => ({ labels: { operation }, value })),
  )
  addCounter(
    registry,
    { name: 'godwit_blob_read_bytes_total', help: 'Bytes that were read from the blob store.' },
    () => measure().readBytes,
  )
  addCounter(
    registry,
    { name: 'godwit_blob_written_bytes_total', help: 'Bytes that were written to the blob store.' },
    () => measure().writtenBytes,
  )
}
