import type { Logger } from 'pino'
import { createRecorder } from './activity/recorder.ts'
import { createActivityStore } from './activity/store/create-activity-store.ts'
import { measureAnalyzer } from './analysis/measured-analyzer.ts'
import { createAnalyzer } from './analyzer/run-analyzer.ts'
import { createDiskBlobStore } from './blobs/disk-blob-store.ts'
import { measureBlobStore } from './blobs/measured-blob-store.ts'
import type { Config } from './config.ts'
import { createDb, createPool } from './db/connection.ts'
import { createDatabaseMeter } from './db/database-meter.ts'
import { migrateToLatest } from './db/migrate.ts'
import type { Deps } from './deps.ts'
import { createDeviceIndex } from './devices/device-index.ts'
import { createRateLimiter } from './http/rate-limit.ts'
import { createRequestDurations } from './http/request-durations.ts'
import { createIdentityProviders } from './identity-providers/identity-provider.ts'
import { createJobs } from './jobs/jobs.ts'
import { findOrCreateSecret } from './server-secrets.ts'
import { createRegistry } from './service/prometheus.ts'
import { createAccessTokens } from './sessions/access-tokens.ts'
import { createSigningKeys } from './sessions/signing-keys.ts'
import { createSignInLimits } from './sign-in/limits.ts'
import { createPageSigner } from './sign-in/page-signer.ts'
import { createUrlSigner } from './transfers/signed-urls.ts'

/** The command line client lists about six times for a patch. */
const linkListsPerMinute = 300

/** Opens everything that the service stands on. `close` undoes it, last opened first closed. */
export async function createDeps(options: {
  config: Config
  log: Logger
  connectionString: string
  clock?: () => Date
  isServing?: () => boolean
}): Promise<{ deps: Deps; close: () => Promise<void> }> {
  const { config, log, connectionString } = options
  const pool = createPool(connectionString)
  let isClosing = false
  pool.on('error', (error) => {
    // Connections that have been told to end may meet the end of PostgreSQL first.
    if (!isClosing) log.warn({ reason: error.message }, 'an idle database connection was lost')
  })
  const database = createDatabaseMeter()
  const db = createDb(pool, database)
  await migrateToLatest(db)
  const [jobs, secret, pageSecret, blobs] = await Promise.all([
    createJobs({ db, log }),
    findOrCreateSecret(db, { name: 'url-signing' }),
    findOrCreateSecret(db, { name: 'pages' }),
    createDiskBlobStore({ dir: config.blobsDir }).then(measureBlobStore),
  ])
  const urls = createUrlSigner({ publicUrl: config.publicUrl, secret })
  const deviceIndex = createDeviceIndex({ db, urls, log, connectionString })
  await deviceIndex.start()
  const clock = options.clock ?? (() => new Date())
  const recorder = await createRecorder({ db, deviceIndex, config, clock, log })
  const activityStore = createActivityStore({ connectionString, config, clock, log })
  const analyzer = measureAnalyzer(createAnalyzer({ log }))
  const signingKeys = createSigningKeys({ db, clock })
  const requests = createRequestDurations()
  const deps: Deps = {
    config,
    db,
    blobs,
    urls,
    deviceIndex,
    recorder,
    activityStore,
    signingKeys,
    accessTokens: createAccessTokens({ keys: signingKeys, issuer: config.publicUrl, clock }),
    identityProviders: createIdentityProviders({ configs: config.identityProviders, clock, log }),
    jobs,
    analyzer,
    rateLimiter: createRateLimiter(config.requestsPerMinute),
    linkLimiter: createRateLimiter(config.requestsPerMinute === undefined ? undefined : linkListsPerMinute),
    signInLimits: createSignInLimits({ pool }),
    pageSigner: createPageSigner(pageSecret),
    clock,
    log,
    requests,
    registry: createRegistry({ requests, recorder, activityStore, deviceIndex, database, blobs, analyzer, jobs }),
    isServing: options.isServing ?? (() => true),
  }
  const close = async () => {
    isClosing = true
    await recorder.stop()
    await deviceIndex.stop()
    // What it breaks off is done again by whoever takes the job next.
    await analyzer.stop()
    await jobs.stop()
    await activityStore.stop()
    await db.destroy()
  }
  return { deps, close }
}
