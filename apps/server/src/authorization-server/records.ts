import { findJsonProblem, isStorableText } from '@godwit/contract'
import type { Adapter, AdapterPayload, errors } from 'oidc-provider'
import type { Db } from '../db/connection.ts'
import { hashToken } from '../random-tokens.ts'
import { revokeSession } from '../sessions/queries.ts'

/**
 * Of these the id is the secret that the client holds, so that it is kept as a hash only. Not of a device code: it is found
 * by its user code, and lives for ten minutes.
 */
const secretModels = new Set(['AuthorizationCode', 'RefreshToken'])

/** Nobody has to be signed in to leave a record: it is kept small. */
const maxRecordLength = 8192

/** Where the authorization server library keeps its sessions, grants, codes and tokens: one table, a row each. */
export function createRecords(options: {
  db: Db
  clock: () => Date
  errors: Pick<typeof errors, 'InvalidGrant' | 'InvalidRequest'>
}): (model: string) => Adapter {
  const { db, clock } = options
  const { InvalidGrant, InvalidRequest } = options.errors
  return (model) => {
    const isSecret = secretModels.has(model)
    const toKey = (id: string) => (isSecret ? hashToken(id).toString('base64url') : id)
    const rows = () => db.selectFrom('authorization_records').selectAll().where('model', '=', model)
    const read = (row: Row | undefined, id?: string): AdapterPayload | undefined => {
      if (row === undefined) return undefined
      return {
        ...row.payload,
        ...(isSecret && id !== undefined ? { jti: id } : {}),
        ...(row.consumed_at === null ? {} : { consumed: Math.floor(row.consumed_at.getTime() / 1000) }),
      }
    }
    return {
      async upsert(id, payload, expiresIn) {
        const { jti, ...rest } = payload
        const text = JSON.stringify(isSecret ? rest : payload)
        if (text.length > maxRecordLength) throw new InvalidRequest('the request is too long')
        if (findJsonProblem(payload) !== undefined)
          throw new InvalidRequest('a parameter has a character that no text has')
        const values = {
          payload: text,
          grant_id: payload.grantId ?? null,
          uid: payload.uid ?? null,
          user_code: payload.userCode ?? null,
          expires_at: expiresIn ? new Date(clock().getTime() + expiresIn * 1000) : null,
        }
        await db
          .insertInto('authorization_records')
          .values({ model, id: toKey(id), ...values })
          .onConflict((conflict) => conflict.columns(['model', 'id']).doUpdateSet(values))
          .execute()
      },
      async find(id) {
        if (!isStorableText(id)) return undefined
        return read(await rows().where('id', '=', toKey(id)).executeTakeFirst(), id)
      },
      async findByUid(uid) {
        if (!isStorableText(uid)) return undefined
        return read(await rows().where('uid', '=', uid).executeTakeFirst())
      },
      async findByUserCode(userCode) {
        if (!isStorableText(userCode)) return undefined
        return read(await rows().where('user_code', '=', userCode).executeTakeFirst())
      },
      /** Of two requests with one code the second fails here: the library's own look at `consumed` comes too early. */
      async consume(id) {
        const { numUpdatedRows } = await db
          .updateTable('authorization_records')
          .set({ consumed_at: clock() })
          .where('model', '=', model)
          .where('id', '=', toKey(id))
          .where('consumed_at', 'is', null)
          .executeTakeFirst()
        if (numUpdatedRows === 0n) throw new InvalidGrant(`${model} already consumed`)
      },
      async destroy(id) {
        // The session of a grant ends with it. Here, since the library does not wait for whoever listens to
        // `grant.revoked`, and a token must not outlive the answer.
        if (model === 'Grant') await revokeSession(db, { id, at: clock() })
        await db.deleteFrom('authorization_records').where('model', '=', model).where('id', '=', toKey(id)).execute()
      },
      async revokeByGrantId(grantId) {
        await db.deleteFrom('authorization_records').where('grant_id', '=', grantId).execute()
      },
    }
  }
}

type Row = { payload: Record<string, unknown>; consumed_at: Date | null }

/** Removes what nobody can use any more. */
export async function deleteExpiredRecords(db: Db, input: { before: Date }): Promise<void> {
  await db.deleteFrom('authorization_records').where('expires_at', '<', input.before).execute()
}
