import type { Logger } from 'pino'
import type { Registry } from 'prom-client'
import type { ActivityStore } from './activity/activity-store.ts'
import type { Recorder } from './activity/recorder.ts'
import type { MeasuredAnalyzer } from './analysis/measured-analyzer.ts'
import type { BlobStore } from './blobs/blob-store.ts'
import type { Config } from './config.ts'
import type { Db } from './db/connection.ts'
import type { DatabaseHealth } from './db/database-health.ts'
import type { DeviceIndex } from './devices/device-index.ts'
import type { RateLimiter } from './http/rate-limit.ts'
import type { RequestDurations } from './http/request-durations.ts'
import type { SharedCounts } from './http/shared-counts.ts'
import type { IdentityProvider } from './identity-providers/identity-provider.ts'
import type { Jobs } from './jobs/jobs.ts'
import type { AccessTokens } from './sessions/access-tokens.ts'
import type { SigningKeys } from './sessions/signing-keys.ts'
import type { SignInLimits } from './sign-in/limits.ts'
import type { PageSigner } from './sign-in/page-signer.ts'
import type { Tracing } from './telemetry/tracing.ts'
import type { Downloads } from './transfers/downloads.ts'
import type { UrlSigner } from './transfers/signed-urls.ts'

/** Everything an action may use. Made once in `main.ts`, or by a test. */
export type Deps = {
  config: Config
  db: Db
  databaseHealth: DatabaseHealth
  blobs: BlobStore
  downloads: Downloads
  urls: UrlSigner
  deviceIndex: DeviceIndex
  recorder: Recorder
  activityStore: ActivityStore
  signingKeys: SigningKeys
  accessTokens: AccessTokens
  identityProviders: IdentityProvider[]
  jobs: Jobs
  analyzer: MeasuredAnalyzer
  sharedCounts: SharedCounts
  rateLimiter: RateLimiter
  /** For lists of download links, each of which leaves an event: by person or service account, whatever key they use. */
  linkLimiter: RateLimiter
  signInLimits: SignInLimits
  pageSigner: PageSigner
  clock: () => Date
  log: Logger
  /** What was answered, by route. */
  requests: RequestDurations
  /** undefined: off. */
  tracing: Tracing | undefined
  /** What `/metrics` tells. */
  registry: Registry
  /** The same, of all processes that share the port. */
  collectFigures: () => Promise<string>
  /** False from the moment the server begins to stop. */
  isServing: () => boolean
}
