import { createPrivateKey, createPublicKey, generateKeyPair as generate, randomUUID } from 'node:crypto'
import { promisify } from 'node:util'
import type { JWK } from 'jose'
import { sql } from 'kysely'
import type { Db } from '../db/connection.ts'

const generateKeyPair = promisify(generate)

/** A key signs for this long, and verifies until the last token that it signed has ended. */
const signingPeriodMs = 30 * 24 * 3600_000
/** A new key is published this long before it signs, so that whoever keeps the published keys for a while has it. */
const announcementMs = 24 * 3600_000
/** Longer than any token lives. */
const verificationMs = 24 * 3600_000
/** Other instances may have made a key meanwhile. */
const rereadAfterMs = 60_000
/** Tokens with invented keys cause no more reads than one in this time. */
const rereadAtMostEveryMs = 5_000

/** Any number will do, as long as nothing else in this database locks it. */
const rotationLock = 7_301_995

export type SigningKey = { kid: string; privateJwk: Record<string, string>; createdAt: Date; signsFrom: Date }

export type SigningKeys = {
  /** The keys that are published, newest first. Makes the first one when there is none. */
  list: () => Promise<SigningKey[]>
  /** The same, read again unless that was done a moment ago: for a token whose key is not known here. */
  reread: () => Promise<SigningKey[]>
  /** The one that signs now. */
  current: () => Promise<SigningKey>
  /** Makes the next key when the newest is old enough, and forgets those that no token needs. */
  rotate: () => Promise<void>
  /** Makes a key that signs at once and forgets all others, with every token that they signed: after a leak. */
  replace: () => Promise<void>
}

/** RSA keys for RS256, in the database: every instance signs and verifies with the same. */
export function createSigningKeys(options: { db: Db; clock: () => Date }): SigningKeys {
  const { db, clock } = options
  let cached: { keys: SigningKey[]; readAt: number } | undefined

  const change = async (choose: (keys: SigningKey[]) => Rotation) => {
    // Made outside of the transaction: it takes up to a second.
    const pair = await generateKeyPair('rsa', { modulusLength: 2048 })
    const privateJwk = pair.privateKey.export({ format: 'jwk' }) as Record<string, string>
    await db.transaction().execute(async (trx) => {
      await sql`select pg_advisory_xact_lock(${rotationLock})`.execute(trx)
      const { signsFrom, expiredKids } = choose(await listSigningKeys(trx))
      if (signsFrom !== undefined) {
        await insertSigningKey(trx, { kid: randomUUID(), privateJwk, createdAt: clock(), signsFrom })
      }
      if (expiredKids.length > 0) await deleteSigningKeys(trx, expiredKids)
    })
    cached = undefined
  }

  const isYounger = (ageMs: number) => cached !== undefined && performance.now() - cached.readAt < ageMs

  const list = async (maxAgeMs = rereadAfterMs) => {
    if (cached !== undefined && isYounger(maxAgeMs)) return cached.keys
    let keys = await listSigningKeys(db)
    if (keys.length === 0) {
      await change((found) => chooseRotation(found, clock()))
      keys = await listSigningKeys(db)
    }
    cached = { keys, readAt: performance.now() }
    return keys
  }

  return {
    list: () => list(),
    reread: () => list(rereadAtMostEveryMs),
    async current() {
      const now = clock()
      const keys = await list()
      const key = keys.find(({ signsFrom }) => signsFrom <= now) ?? keys.at(-1)
      if (key === undefined) throw new Error('there is no signing key')
      return key
    },
    async rotate() {
      const { signsFrom, expiredKids } = chooseRotation(await listSigningKeys(db), clock())
      if (signsFrom === undefined && expiredKids.length === 0) return
      await change((keys) => chooseRotation(keys, clock()))
    },
    async replace() {
      await change((keys) => ({ signsFrom: clock(), expiredKids: keys.map(({ kid }) => kid) }))
    },
  }
}

export type Rotation = { signsFrom: Date | undefined; expiredKids: string[] }

/** What a rotation does to keys given newest first: when a new key would begin to sign, and which keys are forgotten. */
export function chooseRotation(keys: Pick<SigningKey, 'kid' | 'createdAt' | 'signsFrom'>[], now: Date): Rotation {
  const newest = keys[0]
  const isDue = newest === undefined || now.getTime() - newest.signsFrom.getTime() >= signingPeriodMs - announcementMs
  const delayMs = newest === undefined ? 0 : announcementMs
  const signsFrom = isDue ? new Date(now.getTime() + delayMs) : undefined
  // A key ends when the one after it has signed for as long as the last token of the old one can live.
  const expired = keys.filter((_key, index) => {
    const successor = keys[index - 1]
    return successor !== undefined && now.getTime() - successor.signsFrom.getTime() > verificationMs
  })
  return { signsFrom, expiredKids: expired.map(({ kid }) => kid) }
}

/** What may be published of a key (RFC 7517). */
export function toPublicJwk(key: SigningKey): JWK {
  const jwk = createPublicKey(createPrivateKey({ key: key.privateJwk, format: 'jwk' })).export({ format: 'jwk' })
  return { ...(jwk as JWK), kid: key.kid, alg: 'RS256', use: 'sig' }
}

async function listSigningKeys(db: Db): Promise<SigningKey[]> {
  const rows = await db.selectFrom('signing_keys').selectAll().orderBy('signs_from', 'desc').execute()
  return rows.map((row) => ({
    kid: row.kid,
    privateJwk: row.private_jwk,
    createdAt: row.created_at,
    signsFrom: row.signs_from,
  }))
}

async function insertSigningKey(db: Db, key: SigningKey): Promise<void> {
  await db
    .insertInto('signing_keys')
    .values({
      kid: key.kid,
      private_jwk: JSON.stringify(key.privateJwk),
      created_at: key.createdAt,
      signs_from: key.signsFrom,
    })
    .execute()
}

async function deleteSigningKeys(db: Db, kids: string[]): Promise<void> {
  await db.deleteFrom('signing_keys').where('kid', 'in', kids).execute()
}
