import type { Db } from '../db/connection.ts'

const columns = ['id', 'app_id', 'name'] as const

export async function listChannels(db: Db, input: { appId: string }) {
  return await db.selectFrom('channels').select(columns).where('app_id', '=', input.appId).orderBy('id').execute()
}

export async function insertChannel(db: Db, input: { appId: string; name: string }) {
  return await db
    .insertInto('channels')
    .values({ app_id: input.appId, name: input.name })
    .returning(columns)
    .executeTakeFirstOrThrow()
}

export async function findChannel(db: Db, input: { appId: string; channelId: number }) {
  return await db
    .selectFrom('channels')
    .select(columns)
    .where('app_id', '=', input.appId)
    .where('id', '=', input.channelId)
    .executeTakeFirst()
}

export async function deleteChannel(db: Db, input: { channelId: number }): Promise<void> {
  await db.deleteFrom('channels').where('id', '=', input.channelId).execute()
}
