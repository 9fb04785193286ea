import type { ErrorCode } from '@godwit/contract'
import type { StatementLimit } from '../../db/connection.ts'
import type { ActivityStore, ImportResult, StoreMeasures } from '../activity-store.ts'

/** What the counting process does for the service. An import comes in pieces. */
export type WorkerMethods = Omit<ActivityStore, 'importObservations' | 'stop' | 'start' | 'measure'> & {
  beginImport: (input: { appId: string }) => Promise<string>
  continueImport: (input: { id: string; bytes: Uint8Array }) => Promise<void>
  finishImport: (input: { id: string }) => Promise<ImportResult>
  abandonImport: (input: { id: string }) => Promise<void>
}
export type MethodName = keyof WorkerMethods

export type WorkerOptions = {
  connectionString: string
  replicaConnectionString: string | undefined
  /** The database is a process of this machine. */
  isDatabaseEmbedded: boolean
  statementLimit: StatementLimit
  cacheBytes: number
  maxDevices: number
  hourlyRetentionDays: number
  dailyRetentionDays: number
}

/** `nowMs`: the service's time (Unix ms). */
export type ToWorker =
  | { start: WorkerOptions }
  | { call: number; method: MethodName; input: unknown; nowMs: number }
  | { stop: true }

/** `countedUntilMs`: all observations from before are compacted (Unix ms of this machine). */
export type WorkerMeasures = Omit<StoreMeasures, 'questions' | 'lagMs'> & { countedUntilMs: number }

export type CallError =
  | { code: ErrorCode; details: string | undefined; retryAfterSeconds: number | undefined }
  | { message: string; stack: string | undefined }

export type FromWorker =
  | { call: number; value: unknown }
  | { call: number; error: CallError }
  | { log: 'info' | 'warn' | 'error'; fields: object; message: string }
  | { measures: WorkerMeasures }
