import type { Db } from '../db/connection.ts'

export async function findUser(db: Db, input: { id: number }) {
  return await db.selectFrom('users').selectAll().where('id', '=', input.id).executeTakeFirst()
}

export async function findUserByEmail(db: Db, input: { email: string }) {
  return await db
    .selectFrom('users')
    .select(['id', 'email'])
    .where((eb) => eb(eb.fn<string>('lower', ['email']), '=', input.email.toLowerCase()))
    .executeTakeFirst()
}

/** Returns undefined when an account with this e-mail exists, whatever its case. */
export async function insertUser(
  db: Db,
  input: { email: string; displayName: string | null; jwtIssuer: string; passwordHash: string | null },
) {
  return await db
    .insertInto('users')
    .values({
      email: input.email,
      display_name: input.displayName,
      jwt_issuer: input.jwtIssuer,
      password_hash: input.passwordHash,
    })
    .onConflict((conflict) => conflict.doNothing())
    .returningAll()
    .executeTakeFirst()
}

export async function hasUsers(db: Db): Promise<boolean> {
  return (await db.selectFrom('users').select('id').limit(1).executeTakeFirst()) !== undefined
}
