import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createApiKey } from '../../src/api-keys/actions.ts'
import { revokeApiKey } from '../../src/api-keys/queries.ts'
import { generateApiKey, hashApiKey, isUsable, matchesHash } from '../../src/api-keys/rules.ts'
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
    expect(matchesHash(a, hashApiKey(a))).toBe(true)
    expect(matchesHash(b, hashApiKey(a))).toBe(false)
  })

  it('is usable until it expires or is revoked', () => {
    const at = new Date(1000)
    expect(isUsable({ expires_at: null, revoked_at: null }, at)).toBe(true)
    expect(isUsable({ expires_at: new Date(1001), revoked_at: null }, at)).toBe(true)
    expect(isUsable({ expires_at: at, revoked_at: null }, at)).toBe(false)
    expect(isUsable({ expires_at: null, revoked_at: at }, at)).toBe(false)
  })

  it('is kept only as a hash', async () => {
    const { rows } = await sql<{ text: string }>`select api_keys::text as text from api_keys`.execute(service.deps.db)
    expect(rows.length).toBeGreaterThan(0)
    for (const { text } of rows) expect(text).not.toContain(person.apiKey.slice('sb_api_'.length + 8))
  })

  it('fails on the request after its revocation', async () => {
    const { id, key } = await createApiKey(service.deps.db, {
      userId: person.userId,
      name: 'k',
      permission: 'full',
      expiresAt: null,
    })
    const api = service.client(key)
    await api.listApps()
    await revokeApiKey(service.deps.db, { id, at: now })
    await expect(api.listApps()).rejects.toMatchObject({ status: 401, code: 'unauthenticated' })
  })

  it('fails once it has expired', async () => {
    const { key } = await createApiKey(service.deps.db, {
      userId: person.userId,
      name: 'k',
      permission: 'full',
      expiresAt: new Date('2026-01-31T00:00:00Z'),
    })
    const api = service.client(key)
    await api.listApps()
    now = new Date('2026-01-31T00:00:00Z')
    await expect(api.listApps()).rejects.toMatchObject({ status: 401 })
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
