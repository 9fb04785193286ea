import { readFile } from 'node:fs/promises'
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createFirstAccount } from '../src/bootstrap.ts'
import { readConfig } from '../src/config.ts'
import { createDb, createPool, type Db } from '../src/db/connection.ts'
import { dumpSchema } from '../src/db/dump-schema.ts'
import { migrateToLatest } from '../src/db/migrate.ts'
import { createTestApp } from './support/publishing.ts'
import { createTestDatabase, runOnServer } from './support/test-database.ts'
import { createTestService } from './support/test-service.ts'

let db: Db
let database: Awaited<ReturnType<typeof createTestDatabase>>

beforeAll(async () => {
  database = await createTestDatabase()
  db = createDb(createPool(database.connectionString))
})
afterAll(async () => {
  await db.destroy()
  await database.drop()
})

describe('the migrations', () => {
  it('make the schema that is committed as schema.sql (npm run schema)', async () => {
    const committed = await readFile(new URL('../src/db/schema.sql', import.meta.url), 'utf8')
    expect(await dumpSchema(db)).toBe(committed)
  })

  it('may be run by two servers at once', async () => {
    const url = new URL(database.connectionString)
    url.pathname = `/${database.name}_empty`
    await runOnServer(`create database ${database.name}_empty`)
    const [first, second] = [createDb(createPool(url.href)), createDb(createPool(url.href))]
    await Promise.all([migrateToLatest(first), migrateToLatest(second)])
    expect(await dumpSchema(second)).toBe(await dumpSchema(db))
    await Promise.all([first.destroy(), second.destroy()])
    await runOnServer(`drop database ${database.name}_empty`)
  })
})

describe('a schema that a newer version has made', () => {
  it('is left as it is, so that the previous version starts and serves during an upgrade', async () => {
    const newer = await createTestService()
    try {
      await sql`insert into kysely_migration (name, timestamp) values ('9999-of-tomorrow', now()::text)`.execute(
        newer.deps.db,
      )
      await sql`alter table apps add column of_tomorrow text`.execute(newer.deps.db)
      await newer.restart()
      const account = await newer.createAccount()
      const appId = await createTestApp(account)
      expect((await account.api.listApps()).apps.map(({ app_id }) => app_id)).toEqual([appId])
    } finally {
      await newer.stop()
    }
  })

  it('does not hide that one of our own migrations is missing', async () => {
    const other = await createTestDatabase()
    const otherDb = createDb(createPool(other.connectionString))
    await sql`delete from kysely_migration where name like '0006%'`.execute(otherDb)
    await sql`insert into kysely_migration (name, timestamp) values ('9999-of-tomorrow', now()::text)`.execute(otherDb)
    await expect(migrateToLatest(otherDb)).rejects.toThrow('could not be migrated')
    await otherDb.destroy()
    await other.drop()
  })
})

describe('the first account', () => {
  it('is created once, from the settings, even by two servers at once', async () => {
    const key = `sb_api_${'k'.repeat(40)}`
    const config = readConfig({
      GODWIT_ADMIN_EMAIL: 'boss@example.com',
      GODWIT_ADMIN_API_KEY: key,
      GODWIT_ADMIN_PASSWORD: 'correct horse battery',
    })
    const created = await Promise.all([createFirstAccount(db, config), createFirstAccount(db, config)])
    expect(created.filter((account) => account !== undefined)).toEqual([
      {
        email: 'boss@example.com',
        apiKey: key,
        isKeyGenerated: false,
        hasPassword: true,
        generatedPassword: undefined,
      },
    ])
    expect(await createFirstAccount(db, config)).toBeUndefined()
    const users = await db.selectFrom('users').select(['email', 'password_hash']).execute()
    expect(users).toEqual([{ email: 'boss@example.com', password_hash: expect.stringMatching(/^\$argon2id\$/) }])
  })

  it('is not created with a password that is guessed first', async () => {
    await db.deleteFrom('users').execute()
    const config = readConfig({ GODWIT_ADMIN_PASSWORD: 'password1234' })
    await expect(createFirstAccount(db, config)).rejects.toThrow('GODWIT_ADMIN_PASSWORD: is one of the most common')
  })
})
