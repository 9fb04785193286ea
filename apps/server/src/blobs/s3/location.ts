/**
 * Size of each part of a blob but the last (bytes): what the public client sends in one chunk, and more than the 5 MiB that
 * a part of a multipart upload needs. Stored uploads depend on it.
 */
export const partBytes = 8 * 1024 ** 2

/** A multipart upload has at most 10,000 parts. */
export const maxObjectBytes = 10_000 * partBytes

/** A place in a bucket, as `GODWIT_BLOBS` says it. */
export type S3Location = {
  bucket: string
  /** Begins every object key: empty, or with a slash at its end. */
  prefix: string
  /** undefined: AWS. */
  endpoint: string | undefined
  /** What devices reach the bucket by, when that is another address. */
  publicEndpoint: string | undefined
  /** undefined: as the environment or the profile says. */
  region: string | undefined
  isPathStyle: boolean
  encryption: { algorithm: 'AES256' | 'aws:kms'; kmsKeyId: string | undefined } | undefined
}

const parameters = ['endpoint', 'public_endpoint', 'region', 'path_style', 'sse', 'kms_key']

/** Reads `s3://bucket/prefix?endpoint=…`. Throws an Error that says what is wrong with it. */
export function parseS3Location(text: string): S3Location {
  const url = URL.parse(text)
  if (url === null || url.protocol !== 's3:') throw new Error('must be s3://bucket/prefix?…')
  if (url.username !== '' || url.password !== '') {
    throw new Error('must have no credentials: they come from the environment, a profile or the instance')
  }
  if (!/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(url.host)) throw new Error('must have the name of a bucket')
  const query = url.searchParams
  const unknown = [...query.keys()].find((name) => !parameters.includes(name))
  if (unknown !== undefined) throw new Error(`${unknown}: is not one of ${parameters.join(', ')}`)
  const endpoint = readEndpoint(query, 'endpoint')
  return {
    bucket: url.host,
    prefix: readPrefix(url.pathname),
    endpoint,
    publicEndpoint: readEndpoint(query, 'public_endpoint'),
    // What has an endpoint of its own rarely has regions, and signatures need one.
    region: query.get('region') ?? (endpoint === undefined ? undefined : 'us-east-1'),
    isPathStyle: readFlag(query, 'path_style', endpoint !== undefined),
    encryption: readEncryption(query),
  }
}

function readPrefix(pathname: string): string {
  const path = pathname.replaceAll(/^\/+|\/+$/g, '')
  if (path === '') return ''
  if (!/^[\w.-]+(\/[\w.-]+)*$/.test(path))
    throw new Error('prefix: may have letters, digits, ., _, - and single slashes')
  return `${path}/`
}

function readEndpoint(query: URLSearchParams, name: string): string | undefined {
  const value = query.get(name)
  if (value === null) return undefined
  const url = URL.parse(value)
  const isUsable = url !== null && /^https?:$/.test(url.protocol) && url.search === '' && url.username === ''
  if (!isUsable) throw new Error(`${name}: must be an http or https URL`)
  return value.replace(/\/+$/, '')
}

function readFlag(query: URLSearchParams, name: string, otherwise: boolean): boolean {
  const value = query.get(name)
  if (value === null) return otherwise
  if (value !== 'true' && value !== 'false') throw new Error(`${name}: must be true or false`)
  return value === 'true'
}

function readEncryption(query: URLSearchParams): S3Location['encryption'] {
  const algorithm = query.get('sse')
  const kmsKeyId = query.get('kms_key') ?? undefined
  if (algorithm === 'aws:kms') return { algorithm, kmsKeyId }
  if (kmsKeyId !== undefined) throw new Error('kms_key: needs sse=aws:kms')
  if (algorithm === null) return undefined
  if (algorithm !== 'AES256') throw new Error('sse: must be AES256 or aws:kms')
  return { algorithm, kmsKeyId }
}
