import type { Plan, PrivateUser } from '@godwit/contract'
import type { FastifyInstance } from 'fastify'
import type { Selectable } from 'kysely'
import type { Database } from '../db/tables.ts'
import type { Deps } from '../deps.ts'
import { bindRoute } from '../http/bind.ts'
import { describePlan } from '../plans/rules.ts'
import { deleteCurrentUser, getCurrentUser, signUp, updateCurrentUser } from './actions.ts'

export function registerUserRoutes(app: FastifyInstance, deps: Deps): void {
  bindRoute(app, deps, 'createUser', async ({ actor, body }) =>
    toPrivateUser(await signUp(deps, actor, { displayName: body.name ?? null }), deps.config.defaultPlan),
  )
  bindRoute(app, deps, 'getCurrentUser', async ({ actor }) =>
    toPrivateUser(await getCurrentUser(deps, actor), deps.config.defaultPlan),
  )
  bindRoute(app, deps, 'updateCurrentUser', async ({ actor, body }) => {
    const input = { displayName: body.display_name, patchOverageLimit: body.patch_overage_limit }
    return toPrivateUser(await updateCurrentUser(deps, actor, input), deps.config.defaultPlan)
  })
  bindRoute(app, deps, 'deleteCurrentUser', async ({ actor }) => {
    await deleteCurrentUser(deps, actor)
  })
  bindRoute(app, deps, 'getPlan', async ({ actor }) => {
    const { plan } = await getCurrentUser(deps, actor)
    return describePlan(plan ?? deps.config.defaultPlan)
  })
}

function toPrivateUser(user: Selectable<Database['users']>, defaultPlan: Plan): PrivateUser {
  return {
    id: user.id,
    email: user.email,
    display_name: user.display_name ?? undefined,
    payment_customer_id: user.payment_customer_id ?? undefined,
    stripe_customer_id: user.payment_customer_id ?? undefined,
    has_active_subscription: (user.plan ?? defaultPlan) !== 'free',
    jwt_issuer: user.jwt_issuer,
    patch_overage_limit: user.patch_overage_limit ?? undefined,
  }
}
