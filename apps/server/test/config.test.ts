import { describe, expect, it } from 'vitest'
import { ConfigError, readConfig } from '../src/config.ts'

describe('the settings', () => {
  it('have defaults for everything', () => {
    const config = readConfig({})
    expect(config).toMatchObject({
      port: 8080,
      host: '0.0.0.0',
      databaseUrl: undefined,
      publicUrl: 'http://localhost:8080',
      maxArtifactBytes: 2 * 1024 ** 3,
      defaultPlan: 'enterprise',
    })
    expect(config.blobs).toEqual({ kind: 'disk', dir: `${config.dataDir}/blobs` })
  })

  it('treat empty as absent', () => {
    expect(readConfig({ PORT: '', GODWIT_ADMIN_API_KEY: '' })).toEqual(readConfig({}))
  })

  it('let the limit be switched off', () => {
    expect(readConfig({ GODWIT_RATE_LIMIT: 'off' }).requestsPerMinute).toBeUndefined()
    expect(readConfig({ GODWIT_RATE_LIMIT: '100' }).requestsPerMinute).toBe(100)
  })

  it('let recording be switched off, and have the spool in the data folder', () => {
    expect(readConfig({})).toMatchObject({ isActivityRecorded: true, maxSpoolBytes: 4 * 1024 ** 3 })
    const config = readConfig({ GODWIT_ACTIVITY: 'off', GODWIT_SPOOL_MB: '10', GODWIT_DATA_DIR: '/data' })
    expect(config).toMatchObject({ isActivityRecorded: false, maxSpoolBytes: 10 * 1024 ** 2, spoolDir: '/data/spool' })
    expect(() => readConfig({ GODWIT_ACTIVITY: 'yes' })).toThrow('GODWIT_ACTIVITY')
  })

  it('take the trailing slash off the public URL', () => {
    expect(readConfig({ GODWIT_PUBLIC_URL: 'https://push.example.com/' }).publicUrl).toBe('https://push.example.com')
  })

  it('name what is missing beside a setting', () => {
    expect(() => readConfig({ GODWIT_GOOGLE_CLIENT_ID: 'id' })).toThrow('GODWIT_GOOGLE_CLIENT_SECRET')
    expect(() => readConfig({ GODWIT_MICROSOFT_CLIENT_ID: 'id' })).toThrow('GODWIT_MICROSOFT_CLIENT_SECRET')
  })

  it('list the identity providers that are configured', () => {
    const providers = readConfig({
      GODWIT_GOOGLE_CLIENT_ID: 'g',
      GODWIT_GOOGLE_CLIENT_SECRET: 's',
      GODWIT_MICROSOFT_CLIENT_ID: 'm',
      GODWIT_MICROSOFT_CLIENT_SECRET: 's',
      GODWIT_MICROSOFT_TENANT: 'acme.onmicrosoft.com',
      GODWIT_OIDC_ISSUER: 'https://idp.example/realms/acme',
      GODWIT_OIDC_CLIENT_ID: 'o',
      GODWIT_OIDC_NAME: 'Acme',
    }).identityProviders
    expect(providers.map(({ id, name, issuer }) => [id, name, issuer])).toEqual([
      ['google', 'Google', 'https://accounts.google.com'],
      ['microsoft', 'Microsoft', 'https://login.microsoftonline.com/acme.onmicrosoft.com/v2.0'],
      ['oidc', 'Acme', 'https://idp.example/realms/acme'],
    ])
  })

  it.each([
    [undefined, 'open'],
    ['invited', 'invited'],
    ['Example.com, example.org', ['example.com', 'example.org']],
  ])('read GODWIT_SIGN_UP %j as %j', (value, policy) => {
    expect(readConfig(value === undefined ? {} : { GODWIT_SIGN_UP: value }).signUp).toEqual(policy)
  })

  it('read roles, workers, and how the database is reached', () => {
    expect([...readConfig({}).roles]).toEqual(['control', 'device', 'worker'])
    expect([...readConfig({ GODWIT_ROLE: 'device, worker' }).roles]).toEqual(['device', 'worker'])
    expect(readConfig({ GODWIT_WORKERS: 'auto' }).workers).toBeGreaterThan(0)
    const { databaseUrl } = readConfig({ DATABASE_URL: 'postgres://u:p@db/g?sslmode=require' })
    expect(databaseUrl).toBe('postgres://u:p@db/g?sslmode=require&uselibpqcompat=true')
    expect(readConfig({ DATABASE_URL: 'postgres://u:p@db/g' }).databaseUrl).toBe('postgres://u:p@db/g')
  })

  it('take lists apart', () => {
    expect(readConfig({ GODWIT_TRUSTED_PROXIES: '10.0.0.0/8, ::1' }).trustedProxies).toEqual(['10.0.0.0/8', '::1'])
    expect(readConfig({}).ciIssuers).toEqual(['https://token.actions.githubusercontent.com'])
  })

  it.each([
    ['PORT', 'http'],
    ['PORT', '70000'],
    ['DATABASE_URL', 'mysql://db'],
    ['DATABASE_DIRECT_URL', 'postgres://direct-without-the-other/godwit'],
    ['DATABASE_REPLICA_URL', 'postgres://replica-without-the-primary/godwit'],
    ['GODWIT_ROLE', 'device,web-server'],
    ['GODWIT_WORKERS', '0'],
    ['GODWIT_DRAIN_SECONDS', '-1'],
    ['GODWIT_MAX_CONNECTIONS', '15'],
    ['GODWIT_PUBLIC_URL', 'push.example.com'],
    ['GODWIT_PUBLIC_URL', 'https://push.example.com/under-a-path'],
    ['GODWIT_TRUSTED_PROXIES', '10.0.0.1,the-proxy'],
    ['GODWIT_SIGN_UP', 'every-body'],
    ['GODWIT_OIDC_ISSUER', 'http://idp.example'],
    ['GODWIT_OIDC_CLIENT_ID', 'client-without-issuer'],
    ['GODWIT_OIDC_ISSUER', 'https://issuer-without-client.example'],
    ['GODWIT_CI_ISSUERS', 'https://ci.example,not-a-url'],
    ['GODWIT_SMTP_URL', 'https://mail.example'],
    ['GODWIT_SMTP_URL', 'smtp://mail-without-sender.example'],
    ['GODWIT_MICROSOFT_TENANT', 'common/v2.0'],
    ['GODWIT_BLOBS', 'gs://bucket'],
    ['GODWIT_BLOBS', 's3://bucket?endpoint=minio:9000'],
    ['GODWIT_BLOBS', 's3://key:secret@bucket'],
    ['GODWIT_BLOBS', 's3://bucket?sse=rot13'],
    ['GODWIT_BLOBS', 's3://bucket?kms_key=1'],
    ['GODWIT_BLOBS', 's3://bucket/a//b'],
    ['GODWIT_BLOBS', 's3://bucket?pathstyle=true'],
    ['GODWIT_BLOBS_FALLBACK', 'somewhere'],
    ['GODWIT_BLOB_CACHE_MB', '-1'],
    ['GODWIT_DOWNLOADS', 'sometimes'],
    ['GODWIT_CDN_URL', 'https://cdn.example.com'],
    ['GODWIT_ADMIN_EMAIL', 'nobody'],
    ['GODWIT_ADMIN_PASSWORD', 'short'],
    ['GODWIT_ADMIN_API_KEY', 'secret-but-wrong'],
    ['GODWIT_DEFAULT_PLAN', 'gold'],
    ['GODWIT_RATE_LIMIT', '0'],
    ['GODWIT_MAX_ARTIFACT_BYTES', '-1'],
    ['GODWIT_LOG_LEVEL', 'loud'],
    ['GODWIT_METRICS_TOKEN', 'short'],
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'collector:4318'],
    ['OTEL_EXPORTER_OTLP_PROTOCOL', 'grpc'],
    ['OTEL_TRACES_EXPORTER', 'zipkin'],
    ['OTEL_TRACES_SAMPLER', 'sometimes'],
    ['OTEL_TRACES_SAMPLER_ARG', '2'],
  ])('name %s when it is %s, without repeating the value', (name, value) => {
    const read = () => readConfig({ [name]: value })
    expect(read).toThrow(ConfigError)
    expect(read).toThrow(name)
    if (value.includes('-')) expect(read).not.toThrow(value)
  })

  it('read a place in a bucket with all that it says', () => {
    const setting = 's3://artifacts/godwit/eu?endpoint=https://s3.example.com/&sse=aws:kms&kms_key=alias/one'
    expect(readConfig({ GODWIT_BLOBS: setting }).blobs).toEqual({
      kind: 's3',
      location: {
        bucket: 'artifacts',
        prefix: 'godwit/eu/',
        endpoint: 'https://s3.example.com',
        publicEndpoint: undefined,
        region: 'us-east-1',
        isPathStyle: true,
        encryption: { algorithm: 'aws:kms', kmsKeyId: 'alias/one' },
      },
    })
    expect(readConfig({ GODWIT_BLOBS: 's3://artifacts?region=eu-west-1' }).blobs).toMatchObject({
      location: { prefix: '', endpoint: undefined, region: 'eu-west-1', isPathStyle: false, encryption: undefined },
    })
  })

  it('take no artifacts that a bucket could not hold', () => {
    const read = () => readConfig({ GODWIT_BLOBS: 's3://artifacts', GODWIT_MAX_ARTIFACT_BYTES: String(2 ** 40) })
    expect(read).toThrow('GODWIT_MAX_ARTIFACT_BYTES: is at most 83886080000 with a bucket')
  })
})
