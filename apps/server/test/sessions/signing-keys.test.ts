import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createDb, createPool, type Db } from '../../src/db/connection.ts'
import { createAccessTokens } from '../../src/sessions/access-tokens.ts'
import { chooseRotation, createSigningKeys, toPublicJwk } from '../../src/sessions/signing-keys.ts'
import { createTestDatabase } from '../support/test-database.ts'

const day = 24 * 3600_000
const start = new Date('2026-05-01T00:00:00Z')
const after = (days: number) => new Date(start.getTime() + days * day)
const key = (kid: string, signsFrom: Date) => ({ kid, createdAt: signsFrom, signsFrom })

describe('the rotation of signing keys', () => {
  it('begins with a key that signs at once', () => {
    expect(chooseRotation([], start)).toEqual({ signsFrom: start, expiredKids: [] })
  })

  it('announces the next key a day before it signs, after 29 days', () => {
    const keys = [key('a', start)]
    expect(chooseRotation(keys, after(28.9)).signsFrom).toBeUndefined()
    expect(chooseRotation(keys, after(29)).signsFrom).toEqual(after(30))
  })

  it('makes no further key while one is announced', () => {
    expect(chooseRotation([key('b', after(30)), key('a', start)], after(29.5)).signsFrom).toBeUndefined()
  })

  it('keeps an old key until the last token that it signed has ended', () => {
    const keys = [key('b', after(30)), key('a', start)]
    expect(chooseRotation(keys, after(30.5)).expiredKids).toEqual([])
    expect(chooseRotation(keys, after(31.1)).expiredKids).toEqual(['a'])
  })
})

describe('keys in the database', () => {
  let db: Db
  let drop: () => Promise<void>
  let connectionString: string
  let now = start

  beforeAll(async () => {
    const database = await createTestDatabase()
    ;({ drop, connectionString } = database)
    db = createDb(createPool(connectionString))
  })
  afterAll(async () => {
    await db.destroy()
    await drop()
  })

  const createInstance = () => {
    const keys = createSigningKeys({ db, clock: () => now })
    return { keys, tokens: createAccessTokens({ keys, issuer: 'https://godwit.example', clock: () => now }) }
  }

  it('are one and the same for instances that ask for the first at once', async () => {
    const instances = [createInstance(), createInstance(), createInstance()]
    const kids = await Promise.all(instances.map(async ({ keys }) => (await keys.current()).kid))
    expect(new Set(kids).size).toBe(1)
  })

  it('verify on one instance what another has signed', async () => {
    const { token } = await createInstance().tokens.sign({ sub: '1', sid: 's' })
    expect(await createInstance().tokens.verify(token)).toMatchObject({ claims: { sub: '1', sid: 's' } })
  })

  it('take every token with them when they are replaced after a leak', async () => {
    const [a, b] = [createInstance(), createInstance()]
    const { token } = await a.tokens.sign({ sub: '1', sid: 's' })
    await a.keys.replace()
    expect(await a.tokens.verify(token)).toHaveProperty('refusal')
    const next = await a.tokens.sign({ sub: '1', sid: 's' })
    expect(await b.tokens.verify(next.token)).toMatchObject({ claims: { sid: 's' } })
    expect(await b.tokens.verify(token)).toHaveProperty('refusal')
  })

  it('publish no private part', async () => {
    for (const signingKey of await createInstance().keys.list()) {
      expect(Object.keys(toPublicJwk(signingKey)).toSorted()).toEqual(['alg', 'e', 'kid', 'kty', 'n', 'use'])
    }
  })

  it('rotate by themselves, and honour the old key until its tokens have ended', async () => {
    const a = createInstance()
    const { kid } = await a.keys.current()
    now = after(40)
    await a.keys.rotate()
    expect((await a.keys.current()).kid).toBe(kid)
    const last = await a.tokens.sign({ sub: '1', sid: 's' })
    now = new Date(after(41).getTime() + 60_000)
    expect((await a.keys.current()).kid).not.toBe(kid)
    now = new Date(after(40).getTime() + 899_000)
    expect(await createInstance().tokens.verify(last.token)).toHaveProperty('claims')
    now = after(43)
    await a.keys.rotate()
    expect((await a.keys.list()).map((listed) => listed.kid)).not.toContain(kid)
  })
})
