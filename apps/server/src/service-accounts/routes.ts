import type { ServiceAccount } from '@godwit/contract'
import type { FastifyInstance } from 'fastify'
import type { Selectable } from 'kysely'
import { toServiceAccountKey } from '../api-keys/routes.ts'
import type { Database } from '../db/tables.ts'
import type { Deps } from '../deps.ts'
import { bindRoute } from '../http/bind.ts'
import {
  changeServiceAccountRole,
  createServiceAccount,
  createServiceAccountKey,
  listServiceAccountKeys,
  removeServiceAccount,
  revokeServiceAccountKey,
} from './actions.ts'
import { listServiceAccounts } from './queries.ts'

export function registerServiceAccountRoutes(app: FastifyInstance, deps: Deps): void {
  bindRoute(app, deps, 'listServiceAccounts', async ({ params }) => {
    const rows = await listServiceAccounts(deps.db, params)
    return { service_accounts: rows.map(toServiceAccount) }
  })
  bindRoute(app, deps, 'createServiceAccount', async ({ actor, params, body }) =>
    toServiceAccount(await createServiceAccount(deps, actor, { ...params, name: body.name })),
  )
  bindRoute(app, deps, 'updateServiceAccount', async ({ actor, params, body }) => {
    await changeServiceAccountRole(deps, actor, { ...params, role: body.role })
  })
  bindRoute(app, deps, 'deleteServiceAccount', async ({ actor, params }) => {
    await removeServiceAccount(deps, actor, params)
  })
  bindRoute(app, deps, 'listServiceAccountKeys', async ({ params }) => {
    const rows = await listServiceAccountKeys(deps, params)
    return { keys: rows.map(toServiceAccountKey) }
  })
  bindRoute(app, deps, 'createServiceAccountKey', async ({ actor, params, body }) => {
    const { name, expires_in: expiresIn } = body
    const { key, ...row } = await createServiceAccountKey(deps, actor, { ...params, name, expiresIn })
    return { ...toServiceAccountKey(row), key }
  })
  bindRoute(app, deps, 'revokeServiceAccountKey', async ({ actor, params }) => {
    await revokeServiceAccountKey(deps, actor, params)
  })
}

function toServiceAccount(row: Selectable<Database['service_accounts']>): ServiceAccount {
  return {
    id: row.id,
    organization_id: row.organization_id,
    name: row.name,
    role: row.role,
    created_at: row.created_at.toISOString(),
    updated_at: row.updated_at.toISOString(),
  }
}
