import { randomBytes } from 'node:crypto'
import type { Db } from './db/connection.ts'

/** A random secret that all instances on this database share, made by whoever asks first. */
export async function findOrCreateSecret(db: Db, input: { name: string }): Promise<Buffer> {
  await db
    .insertInto('server_secrets')
    .values({ name: input.name, value: randomBytes(32) })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
  const row = await db
    .selectFrom('server_secrets')
    .select('value')
    .where('name', '=', input.name)
    .executeTakeFirstOrThrow()
  return row.value
}

/** Another one, which instances take up when they start. */
export async function replaceSecret(db: Db, input: { name: string }): Promise<void> {
  await db
    .insertInto('server_secrets')
    .values({ name: input.name, value: randomBytes(32) })
    .onConflict((conflict) => conflict.column('name').doUpdateSet((eb) => ({ value: eb.ref('excluded.value') })))
    .execute()
}
