import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Plan } from '@godwit/contract'
import { z } from 'zod'

const apiKeyPattern = /^sb_api_[A-Za-z0-9_-]{32,128}$/

const RateLimit = z.union([
  z.literal('off').transform(() => null),
  z
    .string()
    .regex(/^[1-9]\d{0,8}$/, 'must be a whole number of requests a minute, or off')
    .transform(Number),
])

/** The settings, as the README's table lists them. Empty counts as absent. */
const Environment = z.object({
  PORT: z.coerce.number().int().min(0).max(65_535).default(8080),
  HOST: z.string().default('0.0.0.0'),
  DATABASE_URL: z.url({ protocol: /^postgres(ql)?$/ }).optional(),
  GODWIT_DATA_DIR: z.string().default('.godwit'),
  GODWIT_PUBLIC_URL: z.url({ protocol: /^https?$/ }).optional(),
  GODWIT_BLOBS: z
    .string()
    .refine((value) => readBlobsDir(value, '') !== undefined, 'must be disk, or file:/absolute/path')
    .default('disk'),
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
  GODWIT_LOG_LEVEL: z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']).default('info'),
})

export type Config = {
  port: number
  host: string
  /** undefined: the embedded database under `dataDir`. */
  databaseUrl: string | undefined
  dataDir: string
  /** What clients and devices reach the service by; no trailing slash. */
  publicUrl: string
  blobsDir: string
  maxArtifactBytes: number
  admin: { email: string; password: string | undefined; apiKey: string | undefined }
  defaultPlan: Plan
  /** undefined: off. */
  requestsPerMinute: number | undefined
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
    dataDir,
    publicUrl: (settings.GODWIT_PUBLIC_URL ?? `http://localhost:${settings.PORT}`).replace(/\/+$/, ''),
    blobsDir: readBlobsDir(settings.GODWIT_BLOBS, dataDir) ?? resolve(dataDir, 'blobs'),
    maxArtifactBytes: settings.GODWIT_MAX_ARTIFACT_BYTES,
    admin: {
      email: settings.GODWIT_ADMIN_EMAIL,
      password: settings.GODWIT_ADMIN_PASSWORD,
      apiKey: settings.GODWIT_ADMIN_API_KEY,
    },
    defaultPlan: settings.GODWIT_DEFAULT_PLAN,
    requestsPerMinute: settings.GODWIT_RATE_LIMIT ?? undefined,
    logLevel: settings.GODWIT_LOG_LEVEL,
  }
}

function readBlobsDir(setting: string, dataDir: string): string | undefined {
  if (setting === 'disk') return resolve(dataDir, 'blobs')
  try {
    return fileURLToPath(setting)
  } catch {
    return undefined
  }
}
