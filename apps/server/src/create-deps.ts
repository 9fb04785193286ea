import type { Logger } from 'pino'
import type { Registry } from 'prom-client'
import { createRecorder } from './activity/recorder.ts'
import { createActivityStore } from './activity/store/create-activity-store.ts'
import { measureAnalyzer } from './analysis/measured-analyzer.ts'
import { createAnalyzer } from './analyzer/run-analyzer.ts'
import { measureBlobStore } from './blobs/measured-blob-store.ts'
import { openBlobCache, openBlobs } from './blobs/open-blob-store.ts'
import type { Config } from './config.ts'
import { createDb, createPool, readStatementLimit } from './db/connection.ts'
import { deviceConnections } from './db/connection-counts.ts'
import { type DatabaseHealth, watchDatabase } from './db/database-health.ts'
import { createDatabaseMeter } from './db/database-meter.ts'
import { guardPool } from './db/guarded-pool.ts'
import { migrateToLatest } from './db/migrate.ts'
import { openReplica } from './db/open-replica.ts'
import type { Deps } from './deps.ts'
import { createDeviceIndex } from './devices/device-index.ts'
import { createRateLimiter } from './http/rate-limit.ts'
import { createRequestDurations } from './http/request-durations.ts'
import { createSharedCounts } from './http/shared-counts.ts'
import { createIdentityProviders } from './identity-providers/identity-provider.ts'
import { createJobs } from './jobs/jobs.ts'
import { findOrCreateSecret } from './server-secrets.ts'
import { createProcessRegistry, createRegistry } from './service/prometheus.ts'
import { createAccessTokens } from './sessions/access-tokens.ts'
import { createSigningKeys } from './sessions/signing-keys.ts'
import { createSignInLimits } from './sign-in/limits.ts'
import { createPageSigner } from './sign-in/page-signer.ts'
import { startTracing } from './telemetry/tracing.ts'
import { createDownloads } from './transfers/downloads.ts'
import { createUrlSigner } from './transfers/signed-urls.ts'

/** The command line client lists about six times for a patch. */
const linkListsPerMinute = 300

/** Opens everything that the service stands on, once the database answers. `close` undoes it, last opened first closed. */
export async function createDeps(options: {
  config: Config
  log: Logger
  connectionString: string
  databaseHealth?: DatabaseHealth
  clock?: () => Date
  isServing?: () => boolean
  processRegistry?: Registry
  collectFigures?: () => Promise<string>
}): Promise<{ deps: Deps; close: () => Promise<void> }> {
  const { config, log, connectionString } = options
  const clock = options.clock ?? (() => new Date())
  await using opened = new AsyncDisposableStack()
  const tracing = await startTracing(config.tracing, { log })
  opened.defer(() => tracing?.stop())
  const databaseHealth = options.databaseHealth ?? watchDatabase({ connectionString, log })
  if (options.databaseHealth === undefined) opened.defer(() => databaseHealth.stop())
  await databaseHealth.untilBack()

  const statementLimit = readStatementLimit(config)
  const openPool = (maxConnections: number) =>
    guardPool(() => createPool(connectionString, maxConnections, statementLimit), databaseHealth)
  // Where there is a pooler before the primary there may be one before the replica.
  const replica = openReplica({ connectionString: config.databaseReplicaUrl, statementLimit, log })
  opened.defer(() => replica?.close())
  const database = createDatabaseMeter({ tracing })
  const pool = openPool(config.databaseConnections)
  const db = createDb(pool, database)
  opened.defer(() => db.destroy())
  const deviceDb = createDb(openPool(deviceConnections), database)
  opened.defer(() => deviceDb.destroy())
  await migrateToLatest(db)
  const activityStore = createActivityStore({ connectionString, config, clock, log })
  opened.defer(() => activityStore.stop())
  const jobs = await createJobs({ db, log, tracing, isWorker: config.roles.has('worker') })
  opened.defer(() => jobs.stop())
  const analyzer = measureAnalyzer(createAnalyzer({ log }), { tracing })
  // What it breaks off is done again by whoever takes the job next.
  opened.defer(() => analyzer.stop())
  const [secret, pageSecret, blobs] = await Promise.all([
    findOrCreateSecret(db, { name: 'url-signing' }),
    findOrCreateSecret(db, { name: 'pages' }),
    openBlobs(config).then((store) => measureBlobStore(store, { tracing })),
  ])
  const downloads = createDownloads({ blobs, cache: await openBlobCache(config, log) })
  // Everything but transfers works without it.
  blobs.check().catch((error: unknown) => log.error({ err: error }, 'the blob store cannot be used'))
  const urls = createUrlSigner({ publicUrl: config.publicUrl, secret })
  const seed = (await findOrCreateSecret(db, { name: 'rate-limits' })).readUInt32LE()
  const sharedCounts = createSharedCounts({ db: deviceDb, seed, log })
  opened.defer(() => sharedCounts.stop())
  const deviceIndex = createDeviceIndex({
    db: deviceDb,
    replica: replica?.db,
    urls,
    log,
    connectionString: config.databaseDirectUrl ?? connectionString,
    onCounts: sharedCounts.hear,
  })
  opened.defer(() => deviceIndex.stop())
  await deviceIndex.start()
  const recorder = await createRecorder({ db: deviceDb, deviceIndex, config, clock, log })
  opened.defer(() => recorder.stop())
  const signingKeys = createSigningKeys({ db, clock })
  const requests = createRequestDurations()
  const registry = createRegistry({
    process: options.processRegistry ?? createProcessRegistry(databaseHealth),
    requests,
    recorder,
    activityStore,
    deviceIndex,
    database,
    replica,
    blobs,
    analyzer,
    jobs,
  })
  const deps: Deps = {
    config,
    db,
    databaseHealth,
    blobs,
    downloads,
    urls,
    deviceIndex,
    recorder,
    activityStore,
    signingKeys,
    accessTokens: createAccessTokens({ keys: signingKeys, issuer: config.publicUrl, clock }),
    identityProviders: createIdentityProviders({ configs: config.identityProviders, clock, log }),
    jobs,
    analyzer,
    sharedCounts,
    rateLimiter: createRateLimiter(config.requestsPerMinute, { counts: sharedCounts, name: 'caller' }),
    linkLimiter: createRateLimiter(config.requestsPerMinute === undefined ? undefined : linkListsPerMinute, {
      counts: sharedCounts,
      name: 'links',
    }),
    signInLimits: createSignInLimits({ pool }),
    pageSigner: createPageSigner(pageSecret),
    clock,
    log,
    requests,
    tracing,
    registry,
    collectFigures: options.collectFigures ?? (() => registry.metrics()),
    isServing: options.isServing ?? (() => true),
  }
  const owned = opened.move()
  return { deps, close: () => owned.disposeAsync() }
}
