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
    expect(config.blobsDir).toBe(`${config.dataDir}/blobs`)
  })

  it('treat empty as absent', () => {
    expect(readConfig({ PORT: '', GODWIT_ADMIN_API_KEY: '' })).toEqual(readConfig({}))
  })

  it('let the limit be switched off', () => {
    expect(readConfig({ GODWIT_RATE_LIMIT: 'off' }).requestsPerMinute).toBeUndefined()
    expect(readConfig({ GODWIT_RATE_LIMIT: '100' }).requestsPerMinute).toBe(100)
  })

  it('take the trailing slash off the public URL', () => {
    expect(readConfig({ GODWIT_PUBLIC_URL: 'https://push.example.com/' }).publicUrl).toBe('https://push.example.com')
  })

  it.each([
    ['PORT', 'http'],
    ['PORT', '70000'],
    ['DATABASE_URL', 'mysql://db'],
    ['GODWIT_PUBLIC_URL', 'push.example.com'],
    ['GODWIT_BLOBS', 's3://bucket'],
    ['GODWIT_ADMIN_EMAIL', 'nobody'],
    ['GODWIT_ADMIN_PASSWORD', 'short'],
    ['GODWIT_ADMIN_API_KEY', 'secret-but-wrong'],
    ['GODWIT_DEFAULT_PLAN', 'gold'],
    ['GODWIT_RATE_LIMIT', '0'],
    ['GODWIT_MAX_ARTIFACT_BYTES', '-1'],
    ['GODWIT_LOG_LEVEL', 'loud'],
  ])('name %s when it is %s, without repeating the value', (name, value) => {
    const read = () => readConfig({ [name]: value })
    expect(read).toThrow(ConfigError)
    expect(read).toThrow(name)
    if (value.includes('-')) expect(read).not.toThrow(value)
  })
})
