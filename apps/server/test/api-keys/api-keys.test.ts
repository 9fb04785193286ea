import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createApiKey } from '../../src/api-keys/actions.ts'
import { chooseExpiry, generateApiKey, isUsable, matchesHash } from '../../src/api-keys/rules.ts'
import { hashToken } from '../../src/random-tokens.ts'
import { createTestService, type TestAccount, type TestService } from '../support/test-service.ts'

let service: TestService
let person: TestAccount
let now = new Date('2026-01-01T00:00:00Z')

beforeAll(async () => {
  service = await createTestService({ clock: () => now })
  person = await service.createAccount()
})
afterAll(() => service.stop())

describe('an API key', () => {
  it('is random and matches only its own hash', () => {
    const [a, b] = [generateApiKey(), generateApiKey()]
    expect(a).toMatch(/^sb_api_[\w-]{43}$/)
    expect(a).not.toBe(b)
    expect(matchesHash(a, hashToken(a))).toBe(true)
    expect(matchesHash(b, hashToken(a))).toBe(false)
  })

  it('is usable until it expires or is revoked', () => {
    const at = new Date(1000)
    expect(isUsable({ expires_at: null, revoked_at: null }, at)).toBe(true)
    expect(isUsable({ expires_at: new Date(1001), revoked_at: null }, at)).toBe(true)
    expect(isUsable({ expires_at: at, revoked_at: null }, at)).toBe(false)
    expect(isUsable({ expires_at: null, revoked_at: at }, at)).toBe(false)
  })

  it.each([
    ['30d', '2026-01-31T00:00:00.000Z'],
    ['90d', '2026-04-01T00:00:00.000Z'],
    ['1y', '2027-01-01T00:00:00.000Z'],
    ['none', undefined],
  ] as const)('made for %s works until %s', (expiresIn, end) => {
    expect(chooseExpiry(expiresIn, new Date('2026-01-01T00:00:00Z'))?.toISOString()).toBe(end)
  })

  it('is kept only as a hash', async () => {
    const { rows } = await sql<{ text: string }>`select api_keys::text as text from api_keys`.execute(service.deps.db)
    expect(rows.length).toBeGreaterThan(0)
    for (const { text } of rows) expect(text).not.toContain(person.apiKey.slice('sb_api_'.length + 8))
  })

  it('fails once it has expired', async () => {
    const { key } = await createApiKey(service.deps.db, {
      holder: { userId: person.userId },
      name: 'k',
      permission: 'full',
      expiresAt: new Date('2026-01-31T00:00:00Z'),
    })
    const api = service.client(key)
    await api.listApps()
    now = new Date('2026-01-31T00:00:00Z')
    await expect(api.listApps()).rejects.toMatchObject({ status: 401 })
    now = new Date('2026-01-01T00:00:00Z')
  })

  it('fails when another key has the same first characters', async () => {
    await expect(service.client(`${person.apiKey.slice(0, -1)}~`).listApps()).rejects.toMatchObject({ status: 401 })
  })

  it('records when it was last used', async () => {
    await person.api.listApps()
    const row = await service.deps.db
      .selectFrom('api_keys')
      .select('last_used_at')
      .where('user_id', '=', person.userId)
      .orderBy('id')
      .executeTakeFirstOrThrow()
    expect(row.last_used_at).toEqual(now)
  })
})

describe('the API keys of a person', () => {
  it('are shown once in full, then by how they begin, newest first', async () => {
    const { api } = await service.createAccount()
    const first = await api.createApiKey({ body: { name: 'laptop' } })
    expect(first).toEqual({
      id: expect.any(Number),
      name: 'laptop',
      prefix: first.key.slice(0, 15),
      permission: 'full',
      created_at: '2026-01-01T00:00:00.000Z',
      expires_at: '2027-01-01T00:00:00.000Z',
      last_used_at: null,
      key: expect.stringMatching(/^sb_api_[\w-]{43}$/),
    })
    const second = await api.createApiKey({
      body: { name: 'CI', expires_in: 'none', permission: 'release_and_patch' },
    })
    expect(second).toMatchObject({ expires_at: null, permission: 'release_and_patch' })
    const { api_keys } = await api.listApiKeys()
    expect(api_keys.map(({ name }) => name)).toEqual(['CI', 'laptop', 'test'])
    expect(api_keys[1]).toEqual({ ...first, key: undefined })
    expect(JSON.stringify(api_keys)).not.toContain(first.key.slice(15))
  })

  it('stay in the list when they have expired', async () => {
    const { api } = await service.createAccount()
    const { id } = await api.createApiKey({ body: { name: 'short', expires_in: '30d' } })
    now = new Date('2026-03-01T00:00:00Z')
    const { api_keys } = await api.listApiKeys()
    now = new Date('2026-01-01T00:00:00Z')
    expect(api_keys.map((key) => key.id)).toContain(id)
  })

  it('fail on the request after their revocation, which may be repeated, and leave the list', async () => {
    const { api } = await service.createAccount()
    const { id, key } = await api.createApiKey({ body: { name: 'k' } })
    await service.client(key).listApps()
    await api.revokeApiKey({ params: { keyId: id } })
    await expect(service.client(key).listApps()).rejects.toMatchObject({ status: 401, code: 'unauthenticated' })
    const revokedAt = async () =>
      await service.deps.db.selectFrom('api_keys').select('revoked_at').where('id', '=', id).executeTakeFirstOrThrow()
    const before = await revokedAt()
    now = new Date('2026-01-02T00:00:00Z')
    await api.revokeApiKey({ params: { keyId: id } })
    now = new Date('2026-01-01T00:00:00Z')
    expect(await revokedAt()).toEqual(before)
    expect((await api.listApiKeys()).api_keys.map((row) => row.id)).not.toContain(id)
  })

  it('may revoke themselves', async () => {
    const { api } = await service.createAccount()
    const { id, key } = await api.createApiKey({ body: { name: 'k' } })
    await service.client(key).revokeApiKey({ params: { keyId: id } })
    await expect(service.client(key).listApps()).rejects.toMatchObject({ status: 401 })
  })

  it('are hidden from others', async () => {
    const owner = await service.createAccount()
    const stranger = await service.createAccount()
    const { id, key } = await owner.api.createApiKey({ body: { name: 'k' } })
    await expect(stranger.api.revokeApiKey({ params: { keyId: id } })).rejects.toMatchObject({ status: 404 })
    await service.client(key).listApps()
    expect((await stranger.api.listApiKeys()).api_keys.map((row) => row.id)).not.toContain(id)
  })

  it('with release_and_patch manage no keys', async () => {
    const { api } = await service.createAccount({ permission: 'release_and_patch' })
    for (const call of [
      () => api.listApiKeys(),
      () => api.createApiKey({ body: { name: 'more' } }),
      () => api.revokeApiKey({ params: { keyId: 1 } }),
    ]) {
      await expect(call()).rejects.toMatchObject({ status: 403, code: 'forbidden' })
    }
  })
})
