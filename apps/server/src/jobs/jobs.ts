import { availableParallelism } from 'node:os'
import type { ReleasePlatform } from '@godwit/contract'
import { CompiledQuery, sql } from 'kysely'
import { type JobResult, PgBoss, type WorkOptions } from 'pg-boss'
import type { Logger } from 'pino'
import type { Db } from '../db/connection.ts'
import { isDatabaseUnavailable } from '../db/errors.ts'
import type { Tracing } from '../telemetry/tracing.ts'
import { countJobs, type JobCount } from './count-jobs.ts'
import { createJobMeter, type JobMeter } from './job-meter.ts'

type SqlRunner = { executeSql: (text: string, values?: unknown[]) => Promise<{ rows: unknown[] }> }

const queues = {
  sweep: 'sweep-blobs',
  eventRemoval: 'remove-device-events',
  organizationRemoval: 'delete-organization',
  unfinishedRemovals: 'resume-deletions',
  mail: 'send-mail',
  analysis: 'analyze-release',
  missingAnalyses: 'request-missing-analyses',
  maintenance: 'maintenance',
} as const

/** Uploads that were never finished expire without anybody asking: look for them this often. */
const sweepSchedule = '17 * * * *'
/** A deletion whose job has failed too often goes on at the latest then. */
const unfinishedRemovalsSchedule = '47 * * * *'
/** Signing keys are announced a day before they sign; several tries fit into it. */
const maintenanceSchedule = '7 */6 * * *'

/** A release whose analysis failed too often, or that was there before there were any, has another try then. */
const missingAnalysesSchedule = '37 * * * *'
/** Somebody may be waiting for it, having just released. */
const analysisPollingSeconds = 1

const retry = { retryLimit: 5, retryBackoff: true, retryDelay: 10 }
/** A mail may hold a link that is as good as a password: what has been sent does not stay in the queue. */
const mailOptions = { ...retry, retryLimit: 8, retentionSeconds: 24 * 60 * 60, deleteAfterSeconds: 60 }

const requestsPerInsert = 1000

/** Any number will do, as long as nothing else in this database locks it. */
const startLock = 7_301_999

export type Mail = { to: string; subject: string; text: string }

/** `again`: also when it has been done. */
export type AnalysisRequest = { releaseId: number; platform: ReleasePlatform; again?: boolean }

export type JobHandlers = {
  sweepBlobs: () => Promise<unknown>
  removeDeviceEvents: (input: { appId: string }) => Promise<void>
  removeOrganization: (input: { organizationId: number }) => Promise<void>
  /** Requests the removal of each organization whose deletion has begun. */
  resumeRemovals: () => Promise<void>
  sendMail: (input: Mail) => Promise<void>
  analyzeRelease: (input: AnalysisRequest) => Promise<void>
  /** Requests the analysis of each release that has none. */
  requestMissingAnalyses: () => Promise<unknown>
  /** What time alone asks for. */
  maintain: () => Promise<void>
}

/** Work that follows a commit, done once among all instances, and again when it failed. */
export type Jobs = {
  /** Has the bytes that no artifact refers to removed, soon. Part of the transaction that dropped the artifact. */
  requestBlobSweep: (db: Db) => Promise<void>
  /** Has the device events of an app removed. Part of the transaction that deletes the app. */
  requestEventRemoval: (db: Db, input: { appId: string }) => Promise<void>
  /** Has what is below an organization removed, and then itself. Part of the transaction that begins the deletion. */
  requestOrganizationRemoval: (db: Db, input: { organizationId: number }) => Promise<void>
  /** Has a mail sent. Part of the transaction that the mail tells of. */
  requestMail: (db: Db, input: Mail) => Promise<void>
  /** Has releases analyzed, soon. Part of the transaction by which there is something to analyze. */
  requestAnalyses: (db: Db, requests: AnalysisRequest[]) => Promise<void>
  /** What waits, runs and has failed, of all instances. */
  count: () => Promise<JobCount[]>
  /** What the jobs of this process took. */
  measure: JobMeter['measure']
  /** Starts doing what was requested. */
  work: (handlers: JobHandlers) => Promise<void>
  /** Lets a running job finish. */
  stop: () => Promise<void>
}

/** Jobs in the schema `pgboss` of the database. */
export async function createJobs(options: {
  db: Db
  log: Logger
  isWorker?: boolean
  tracing?: Tracing | undefined
}): Promise<Jobs> {
  const { isWorker = true } = options
  const boss = new PgBoss({ db: runOn(options.db), supervise: isWorker, schedule: isWorker })
  boss.on('error', (error) => {
    // It asks again by itself, and that the database is away is in the log already.
    if (!isDatabaseUnavailable(error)) options.log.error({ err: error }, 'job queue')
  })
  await options.db.transaction().execute(async (trx) => {
    // Two instances that start on an empty database would make its tables at the same time, and one of them fail.
    await sql`select pg_advisory_xact_lock(${startLock})`.execute(trx)
    await boss.start()
    for (const queue of Object.values(queues)) {
      await boss.createQueue(queue, queue === queues.mail ? mailOptions : retry)
    }
  })
  const meter = createJobMeter(Object.values(queues), options)
  /** The job goes on with the trace of what asks for it. */
  const traced = <Data extends object>(data: Data): Traced<Data> => {
    const traceparent = options.tracing?.findTraceparent()
    return traceparent === undefined ? data : { ...data, traceparent }
  }
  return {
    async requestBlobSweep(db) {
      await boss.send(queues.sweep, {}, { db: runOn(db) })
    },
    async requestEventRemoval(db, { appId }) {
      await boss.send(queues.eventRemoval, traced({ appId }), { db: runOn(db) })
    },
    async requestOrganizationRemoval(db, { organizationId }) {
      await boss.send(queues.organizationRemoval, traced({ organizationId }), { db: runOn(db) })
    },
    async requestMail(db, { to, subject, text }) {
      await boss.send(queues.mail, traced({ to, subject, text }), { db: runOn(db) })
    },
    async requestAnalyses(db, requests) {
      for (let from = 0; from < requests.length; from += requestsPerInsert) {
        const jobs = requests.slice(from, from + requestsPerInsert).map((request) => ({ data: traced(request) }))
        await boss.insert(queues.analysis, jobs, { db: runOn(db) })
      }
    },
    count: () => countJobs(options.db, Object.values(queues)),
    measure: meter.measure,
    async work(handlers) {
      await startWork(boss, handlers, { log: options.log, meter })
    },
    async stop() {
      await boss.stop({ graceful: true, timeout: 30_000 })
    },
  }
}

type Traced<Data> = Data & { traceparent?: string }

type Context = { log: Logger; meter: JobMeter }

async function startWork(boss: PgBoss, handlers: JobHandlers, context: Context): Promise<void> {
  const { meter } = context
  await boss.work(queues.sweep, () => meter.run(queues.sweep, handlers.sweepBlobs))
  await boss.work(queues.unfinishedRemovals, () => meter.run(queues.unfinishedRemovals, handlers.resumeRemovals))
  await workOnEach(boss, context, queues.eventRemoval, handlers.removeDeviceEvents)
  await workOnEach(boss, context, queues.organizationRemoval, handlers.removeOrganization)
  await workOnEach(boss, context, queues.mail, handlers.sendMail)
  // Two at a time on one core would each take twice as long, and twice the memory.
  const eachOnACore = { localConcurrency: availableParallelism(), pollingIntervalSeconds: analysisPollingSeconds }
  await workOnEach(boss, context, queues.analysis, handlers.analyzeRelease, eachOnACore)
  await boss.work(queues.missingAnalyses, () => meter.run(queues.missingAnalyses, handlers.requestMissingAnalyses))
  await boss.work(queues.maintenance, () => meter.run(queues.maintenance, handlers.maintain))
  await boss.schedule(queues.sweep, sweepSchedule)
  await boss.schedule(queues.maintenance, maintenanceSchedule)
  await boss.schedule(queues.unfinishedRemovals, unfinishedRemovalsSchedule)
  await boss.schedule(queues.missingAnalyses, missingAnalysesSchedule)
  await boss.send(queues.unfinishedRemovals, {})
  await boss.send(queues.missingAnalyses, {})
}

/** Takes several requests at a time, one after the other. One that fails is tried again without the others. */
async function workOnEach<Data>(
  boss: PgBoss,
  { log, meter }: Context,
  queue: string,
  handle: (data: Data) => Promise<void>,
  options: WorkOptions = { batchSize: 10 },
): Promise<void> {
  const eachOnItsOwn = { ...options, perJobResults: true } as const
  await boss.work<Traced<Data>, undefined, typeof eachOnItsOwn>(queue, eachOnItsOwn, async (requests) => {
    const results: JobResult[] = []
    for (const { id, data } of requests) {
      try {
        await meter.run(queue, () => handle(data), data.traceparent)
        results.push({ id, status: 'completed' })
      } catch (error) {
        const message = error instanceof Error ? error.message : String(error)
        log.warn({ queue, reason: message }, 'a job failed')
        results.push({ id, status: 'failed', output: { message } })
      }
    }
    return results
  })
}

/** The same statements inside a transaction of ours. */
function runOn(db: Db): SqlRunner {
  return {
    executeSql: async (text, values = []) => ({ rows: (await db.executeQuery(CompiledQuery.raw(text, values))).rows }),
  }
}
