import type { ApiKey, ServiceAccountKey } from '@godwit/contract'
import type { FastifyInstance } from 'fastify'
import type { Selectable } from 'kysely'
import type { Database } from '../db/tables.ts'
import type { Deps } from '../deps.ts'
import { requirePerson } from '../http/actor.ts'
import { bindRoute } from '../http/bind.ts'
import { createPersonalApiKey, revokePersonalApiKey } from './actions.ts'
import { listApiKeys } from './queries.ts'
import { apiKeyPrefix } from './rules.ts'

export function registerApiKeyRoutes(app: FastifyInstance, deps: Deps): void {
  bindRoute(app, deps, 'listApiKeys', async ({ actor }) => {
    const { userId } = requirePerson(actor)
    const rows = await listApiKeys(deps.db, { holder: { userId } })
    return { api_keys: rows.map(toApiKey) }
  })
  bindRoute(app, deps, 'createApiKey', async ({ actor, body }) => {
    const { userId } = requirePerson(actor)
    const { name, permission, expires_in: expiresIn } = body
    const { key, ...row } = await createPersonalApiKey(deps, { userId, name, permission, expiresIn })
    return { ...toApiKey(row), key }
  })
  bindRoute(app, deps, 'revokeApiKey', async ({ actor, params }) => {
    const { userId } = requirePerson(actor)
    await revokePersonalApiKey(deps, { userId, keyId: params.keyId })
  })
}

function toApiKey(row: Selectable<Database['api_keys']>): ApiKey {
  return { ...toServiceAccountKey(row), permission: row.permission }
}

export function toServiceAccountKey(row: Selectable<Database['api_keys']>): ServiceAccountKey {
  return {
    id: row.id,
    name: row.name,
    prefix: apiKeyPrefix + row.prefix,
    created_at: row.created_at.toISOString(),
    expires_at: row.expires_at?.toISOString() ?? null,
    last_used_at: row.last_used_at?.toISOString() ?? null,
  }
}
