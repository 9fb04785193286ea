import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createFirstAccount } from '../src/bootstrap.ts'
import { readConfig } from '../src/config.ts'
import { createDb, createPool, type Db } from '../src/db/connection.ts'
import { dumpSchema } from '../src/db/dump-schema.ts'
import { migrateToLatest } from '../src/db/migrate.ts'
import { createTestDatabase, runOnServer } from './support/test-database.ts'

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
