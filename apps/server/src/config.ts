import { availableParallelism } from 'node:os'
import { resolve } from 'node:path'
import { Plan } from '@godwit/contract'
import { z } from 'zod'
import { type BlobsLocation, parseBlobsLocation } from './blobs/blobs-location.ts'
import type { DownloadOptions } from './blobs/open-blob-store.ts'
import { maxObjectBytes } from './blobs/s3/location.ts'
import {
  type IdentityProviderConfig,
  listIdentityProviders,
  requireWholeProviders,
  type SignUpPolicy,
  signInSettings,
} from './identity-providers/sign-in-settings.ts'
import { List } from './setting-list.ts'
import { readTracing, type TracingConfig, tracingSettings } from './telemetry/tracing-settings.ts'

const apiKeyPattern = /^sb_api_[A-Za-z0-9_-]{32,128}$/

const RateLimit = z.union([
  z.literal('off').transform(() => null),
  z
    .string()
    .regex(/^[1-9]\d{0,8}$/, 'must be a whole number of requests a minute, or off')
    .transform(Number),
])

const Blobs = z.string().superRefine((value, context) => {
  try {
    parseBlobsLocation(value, '')
  } catch (error) {
    context.addIssue({ code: 'custom', message: (error as Error).message })
  }
})

const roles = ['control', 'device', 'worker'] as const
/** `control`: the API, pages, uploads. `device`: what apps ask. `worker`: jobs, and the compaction of what is recorded. */
export type Role = (typeof roles)[number]

const PostgresUrl = z.url({ protocol: /^postgres(ql)?$/ }).transform((value) => {
  // `require` encrypts without verifying, as everywhere but in the driver, which would take it for `verify-full`.
  const url = new URL(value)
  if (url.searchParams.has('sslmode')) url.searchParams.set('uselibpqcompat', 'true')
  return url.href
})

/** The settings, as the README's table lists them. Empty counts as absent. */
const Environment = z
  .object({
    PORT: z.coerce.number().int().min(0).max(65_535).default(8080),
    HOST: z.string().default('0.0.0.0'),
    DATABASE_URL: PostgresUrl.optional(),
    DATABASE_DIRECT_URL: PostgresUrl.optional(),
    DATABASE_REPLICA_URL: PostgresUrl.optional(),
    GODWIT_DATABASE_CONNECTIONS: z.coerce.number().int().min(2).max(1000).default(10),
    GODWIT_STATEMENT_TIMEOUT_SECONDS: z.coerce.number().int().min(1).max(3600).default(15),
    GODWIT_ROLE: List.pipe(z.array(z.enum(roles)).min(1)).default([...roles]),
    GODWIT_WORKERS: z
      .union([z.literal('auto').transform(() => availableParallelism()), z.coerce.number().int().min(1).max(256)])
      .default(1),
    GODWIT_MAX_CONNECTIONS: z.coerce.number().int().min(16).max(1_000_000).default(16_384),
    GODWIT_DRAIN_SECONDS: z.coerce.number().min(0).max(3600).default(0),
    GODWIT_DATA_DIR: z.string().default('.godwit'),
    GODWIT_PUBLIC_URL: z
      .url({ protocol: /^https?$/ })
      .refine(
        (value) => !/[?#@]/.test(value) && /^\/*$/.test(URL.parse(value)?.pathname ?? ''),
        'must be a host alone, without a path',
      )
      .optional(),
    GODWIT_BLOBS: Blobs.default('disk'),
    GODWIT_BLOBS_FALLBACK: Blobs.optional(),
    GODWIT_BLOB_CACHE_MB: z.coerce.number().int().min(0).max(1_048_576).default(1024),
    GODWIT_DOWNLOADS: z.enum(['redirect', 'proxy']).default('redirect'),
    GODWIT_CDN_URL: z
      .url({ protocol: /^https?$/ })
      .refine((value) => !/[?#@]/.test(value), 'must have neither a query nor credentials')
      .optional(),
    GODWIT_MAX_ARTIFACT_BYTES: z.coerce
      .number()
      .int()
      .min(1)
      .max(2 ** 43)
      .default(2 * 1024 ** 3),
    GODWIT_ADMIN_EMAIL: z.email().default('admin@godwit.local'),
    GODWIT_ADMIN_PASSWORD: z.string().min(12).max(128).optional(),
    GODWIT_ADMIN_API_KEY: z
      .string()
      .regex(apiKeyPattern, 'must be sb_api_ and 32 to 128 letters, digits, - or _')
      .optional(),
    GODWIT_DEFAULT_PLAN: Plan.default('enterprise'),
    GODWIT_RATE_LIMIT: RateLimit.default(6000),
    GODWIT_TRUSTED_PROXIES: List.pipe(z.array(z.union([z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6()]))).default([]),
    GODWIT_SMTP_URL: z.url({ protocol: /^smtps?$/ }).optional(),
    GODWIT_MAIL_FROM: z.string().max(320).optional(),
    GODWIT_AUDIT_RETENTION_DAYS: z.coerce.number().int().min(90).max(36_500).default(400),
    GODWIT_ACTIVE_WINDOW_DAYS: z.coerce.number().int().min(1).max(366).default(28),
    GODWIT_HOURLY_RETENTION_DAYS: z.coerce.number().int().min(33).max(36_500).default(90),
    GODWIT_DAILY_RETENTION_DAYS: z.coerce.number().int().min(33).max(36_500).default(400),
    GODWIT_MAX_DEVICES: z.coerce.number().int().min(1000).max(100_000_000).default(20_000_000),
    GODWIT_METRICS_CACHE_MB: z.coerce.number().int().min(16).max(1536).default(1024),
    GODWIT_ACTIVITY: z.enum(['on', 'off']).default('on'),
    GODWIT_SPOOL_MB: z.coerce.number().int().min(1).max(1_048_576).default(4096),
    GODWIT_METRICS_TOKEN: z
      .string()
      .regex(/^[\w.~+/=-]{16,256}$/, 'must be 16 to 256 letters, digits or . _ ~ + / = -')
      .optional(),
    ...signInSettings,
    ...tracingSettings,
    GODWIT_LOG_LEVEL: z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']).default('info'),
  })
  .superRefine((settings, context) => {
    const require = (name: keyof typeof settings, reason: string) => {
      if (settings[name] === undefined) context.addIssue({ code: 'custom', path: [name], message: reason })
    }
    if (settings.GODWIT_WORKERS > 1 && process.platform !== 'linux')
      context.addIssue({ code: 'custom', path: ['GODWIT_WORKERS'], message: 'more than one needs Linux' })
    if (settings.DATABASE_DIRECT_URL !== undefined) require('DATABASE_URL', 'is needed with DATABASE_DIRECT_URL')
    if (settings.DATABASE_REPLICA_URL !== undefined) require('DATABASE_URL', 'is needed with DATABASE_REPLICA_URL')
    requireWholeProviders(settings, require)
    if (settings.GODWIT_BLOBS.startsWith('s3:') && settings.GODWIT_MAX_ARTIFACT_BYTES > maxObjectBytes) {
      const message = `is at most ${maxObjectBytes} with a bucket`
      context.addIssue({ code: 'custom', path: ['GODWIT_MAX_ARTIFACT_BYTES'], message })
    }
    if (settings.GODWIT_CDN_URL !== undefined && !settings.GODWIT_BLOBS.startsWith('s3:')) {
      context.addIssue({ code: 'custom', path: ['GODWIT_CDN_URL'], message: 'needs a bucket in GODWIT_BLOBS' })
    }
    if (settings.GODWIT_SMTP_URL !== undefined) require('GODWIT_MAIL_FROM', 'is needed with GODWIT_SMTP_URL')
  })

export type Config = {
  port: number
  host: string
  /** undefined: the embedded database under `dataDir`. */
  databaseUrl: string | undefined
  /** Past a pooler that shares connections between transactions, which `databaseUrl` then is. */
  databaseDirectUrl: string | undefined
  /** A standby that what devices are answered from, and metrics, may be read of. */
  databaseReplicaUrl: string | undefined
  /** The control door may have so many; a statement may take so long. */
  databaseConnections: number
  statementTimeoutMs: number
  roles: ReadonlySet<Role>
  /** Processes that share the port. */
  workers: number
  /** Open to a process at once; one address may have three quarters of them. */
  maxConnections: number
  /** How long requests are taken after `/readyz` began to fail. */
  drainMs: number
  dataDir: string
  /** What clients and devices reach the service by; no trailing slash. */
  publicUrl: string
  blobs: BlobsLocation
  /** Read of what `blobs` lacks, while an installation moves. */
  blobsFallback: BlobsLocation | undefined
  /** Where copies of patches in a bucket are kept for when it is away, and how much of them. */
  blobCacheDir: string
  maxBlobCacheBytes: number
  /** How bytes in a bucket reach who downloads them. */
  downloads: DownloadOptions
  maxArtifactBytes: number
  admin: { email: string; password: string | undefined; apiKey: string | undefined }
  defaultPlan: Plan
  /** undefined: off. */
  requestsPerMinute: number | undefined
  /** Addresses and networks of reverse proxies whose X-Forwarded-For is believed. */
  trustedProxies: string[]
  /** Whom an identity provider may bring in: anybody, the invited, or also the people of these e-mail domains. */
  signUp: SignUpPolicy
  identityProviders: IdentityProviderConfig[]
  /** Issuers whose tokens trust rules may name. */
  ciIssuers: string[]
  /** Months of the audit log are dropped once all of them is older. */
  auditRetentionDays: number
  /** A device counts as active for this long after it was seen. */
  activeWindowDays: number
  /** Months of what is recorded by the hour, and by the day, are dropped once all of them is older. */
  hourlyRetentionDays: number
  dailyRetentionDays: number
  /** Devices that are counted of an app: anybody can invent them, and each takes 60 bytes of memory. */
  maxDevicesPerApp: number
  /** What the metrics may keep of the bitmaps in memory. */
  metricsCacheBytes: number
  /** Whether it is recorded which devices were seen. */
  isActivityRecorded: boolean
  /** Where what devices tell waits while the database is away, and how much of it. */
  spoolDir: string
  maxSpoolBytes: number
  /** undefined: no mail is sent. */
  mail: { smtpUrl: string; from: string } | undefined
  /** Who asks for `/metrics` must have it; undefined: anybody may ask. */
  metricsToken: string | undefined
  /** undefined: no traces. */
  tracing: TracingConfig | undefined
  logLevel: string
}

export class ConfigError extends Error {}

/** Reads and validates the environment. Throws ConfigError with one line per wrong setting, without its value. */
export function readConfig(environment: NodeJS.ProcessEnv): Config {
  const present = Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== ''))
  const parsed = Environment.safeParse(present)
  if (!parsed.success) {
    const lines = parsed.error.issues.map((issue) => `  ${issue.path.join('.')}: ${issue.message}`)
    throw new ConfigError(`These settings are wrong:\n${lines.join('\n')}`)
  }
  const settings = parsed.data
  const dataDir = resolve(settings.GODWIT_DATA_DIR)
  return {
    port: settings.PORT,
    host: settings.HOST,
    databaseUrl: settings.DATABASE_URL,
    databaseDirectUrl: settings.DATABASE_DIRECT_URL,
    databaseReplicaUrl: settings.DATABASE_REPLICA_URL,
    databaseConnections: settings.GODWIT_DATABASE_CONNECTIONS,
    statementTimeoutMs: settings.GODWIT_STATEMENT_TIMEOUT_SECONDS * 1000,
    roles: new Set(settings.GODWIT_ROLE),
    workers: settings.GODWIT_WORKERS,
    maxConnections: settings.GODWIT_MAX_CONNECTIONS,
    drainMs: settings.GODWIT_DRAIN_SECONDS * 1000,
    dataDir,
    publicUrl: (settings.GODWIT_PUBLIC_URL ?? `http://localhost:${settings.PORT}`).replace(/\/+$/, ''),
    blobs: parseBlobsLocation(settings.GODWIT_BLOBS, dataDir),
    blobsFallback:
      settings.GODWIT_BLOBS_FALLBACK === undefined
        ? undefined
        : parseBlobsLocation(settings.GODWIT_BLOBS_FALLBACK, dataDir),
    blobCacheDir: resolve(dataDir, 'blob-cache'),
    maxBlobCacheBytes: settings.GODWIT_BLOB_CACHE_MB * 1024 ** 2,
    downloads: {
      cdnUrl: settings.GODWIT_CDN_URL?.replace(/\/+$/, ''),
      isProxied: settings.GODWIT_DOWNLOADS === 'proxy',
    },
    maxArtifactBytes: settings.GODWIT_MAX_ARTIFACT_BYTES,
    admin: {
      email: settings.GODWIT_ADMIN_EMAIL,
      password: settings.GODWIT_ADMIN_PASSWORD,
      apiKey: settings.GODWIT_ADMIN_API_KEY,
    },
    defaultPlan: settings.GODWIT_DEFAULT_PLAN,
    requestsPerMinute: settings.GODWIT_RATE_LIMIT ?? undefined,
    trustedProxies: settings.GODWIT_TRUSTED_PROXIES,
    signUp: settings.GODWIT_SIGN_UP,
    identityProviders: listIdentityProviders(settings),
    ciIssuers: settings.GODWIT_CI_ISSUERS,
    auditRetentionDays: settings.GODWIT_AUDIT_RETENTION_DAYS,
    activeWindowDays: settings.GODWIT_ACTIVE_WINDOW_DAYS,
    hourlyRetentionDays: settings.GODWIT_HOURLY_RETENTION_DAYS,
    dailyRetentionDays: settings.GODWIT_DAILY_RETENTION_DAYS,
    maxDevicesPerApp: settings.GODWIT_MAX_DEVICES,
    metricsCacheBytes: settings.GODWIT_METRICS_CACHE_MB * 1024 ** 2,
    isActivityRecorded: settings.GODWIT_ACTIVITY === 'on',
    spoolDir: resolve(dataDir, 'spool'),
    maxSpoolBytes: settings.GODWIT_SPOOL_MB * 1024 ** 2,
    mail:
      settings.GODWIT_SMTP_URL === undefined
        ? undefined
        : { smtpUrl: settings.GODWIT_SMTP_URL, from: settings.GODWIT_MAIL_FROM ?? '' },
    metricsToken: settings.GODWIT_METRICS_TOKEN,
    tracing: readTracing(settings),
    logLevel: settings.GODWIT_LOG_LEVEL,
  }
}
