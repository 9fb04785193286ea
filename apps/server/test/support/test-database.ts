import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { inject } from 'vitest'

const templateName = 'godwit'

export type TestDatabase = { connectionString: string; name: string; drop: () => Promise<void> }

/** A database of one's own, cloned from the migrated template. */
export async function createTestDatabase(): Promise<TestDatabase> {
  return await createDatabase(templateName)
}

/** A database in which there is nothing. */
export async function createEmptyDatabase(): Promise<TestDatabase> {
  return await createDatabase('template0')
}

async function createDatabase(template: string): Promise<TestDatabase> {
  const name = `test_${randomBytes(6).toString('hex')}`
  await runOnServer(`create database ${name} template ${template}`)
  const url = new URL(inject('postgresUrl'))
  url.pathname = `/${name}`
  return {
    connectionString: url.href,
    name,
    drop: () => runOnServer(`drop database if exists ${name} with (force)`),
  }
}

/** Runs a statement that is not about the test's own database. */
export async function runOnServer(statement: string): Promise<void> {
  const url = new URL(inject('postgresUrl'))
  url.pathname = '/postgres'
  const client = new pg.Client({ connectionString: url.href })
  await client.connect()
  try {
    await client.query(statement)
  } finally {
    await client.end()
  }
}
