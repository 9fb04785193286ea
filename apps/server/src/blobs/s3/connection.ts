import { S3Client, type S3ClientConfig } from '@aws-sdk/client-s3'
import { BlobsUnavailableError } from '../blob-store.ts'
import type { S3Location } from './location.ts'

/** What an operation may take, with its retries (ms). A store that hangs must not hold up whoever asks. */
export const timeouts = { quickMs: 3000, transferMs: 30_000, composeMs: 120_000 }

const connectTimeoutMs = 2000
const maxAttempts = 3
/** Failures in a row after which the store counts as gone, and for how long before one request tries again. */
const failuresUntilGone = 3
const goneMs = 2000
/** All that this process may have going on with the store at once. */
const maxSockets = 320

export type S3Connection = {
  /** Runs an operation. What the store refuses for a reason of ours (404, 412) is thrown as it is. */
  run: <Result>(what: string, timeoutMs: number, operate: (signal: AbortSignal) => Promise<Result>) => Promise<Result>
  client: S3Client
  /** Signs what devices fetch: the bucket may have another address for them. */
  publicClient: S3Client
}

export function connect(location: S3Location): S3Connection {
  const client = new S3Client(toClientConfig(location, location.endpoint))
  const publicClient =
    location.publicEndpoint === undefined ? client : new S3Client(toClientConfig(location, location.publicEndpoint))
  let failures = 0
  let goneUntil = 0
  const run: S3Connection['run'] = async (what, timeoutMs, operate) => {
    if (performance.now() < goneUntil) throw new BlobsUnavailableError(`${what}: the bucket did not answer before`)
    // One tries, and the others are still refused until it has an answer.
    if (failures >= failuresUntilGone) goneUntil = performance.now() + Math.min(timeoutMs, timeouts.quickMs)
    try {
      const result = await operate(AbortSignal.timeout(timeoutMs))
      failures = 0
      goneUntil = 0
      return result
    } catch (error) {
      failures = isAnswering(error) ? 0 : failures + 1
      goneUntil = failures >= failuresUntilGone ? performance.now() + goneMs : 0
      if (isAboutObject(error)) throw error
      throw new BlobsUnavailableError(`${what}: ${describe(error)}`, { cause: error })
    }
  }
  return { run, client, publicClient }
}

function toClientConfig(location: S3Location, endpoint: string | undefined): S3ClientConfig {
  return {
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(location.region === undefined ? {} : { region: location.region }),
    forcePathStyle: location.isPathStyle,
    maxAttempts,
    // Checksums in the newer form are unknown to many stores. What is stored is read back and hashed.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    requestHandler: {
      connectionTimeout: connectTimeoutMs,
      httpAgent: { keepAlive: true, maxSockets },
      httpsAgent: { keepAlive: true, maxSockets },
    },
  }
}

/** It is there, whatever it thinks of us. */
function isAnswering(error: unknown): boolean {
  const status = getStatus(error)
  return status !== undefined && status < 500 && status !== 429
}

function isAboutObject(error: unknown): boolean {
  return isNotFound(error) || isTaken(error)
}

export function isNotFound(error: unknown): boolean {
  return getStatus(error) === 404 && (error as Error).name !== 'NoSuchBucket'
}

/** Another request has made the object, or is about to. */
export function isTaken(error: unknown): boolean {
  const status = getStatus(error)
  return status === 412 || status === 409
}

function getStatus(error: unknown): number | undefined {
  return (error as { $metadata?: { httpStatusCode?: number } }).$metadata?.httpStatusCode
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const status = getStatus(error)
  const text = error.message === '' || error.message === error.name ? error.name : `${error.name}, ${error.message}`
  return status === undefined ? text : `${text} (HTTP ${status})`
}
