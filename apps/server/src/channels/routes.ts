import type { FastifyInstance } from 'fastify'
import type { Deps } from '../deps.ts'
import { bindRoute } from '../http/bind.ts'
import { createChannel, deleteChannel } from './actions.ts'
import { listChannels } from './queries.ts'

export function registerChannelRoutes(app: FastifyInstance, deps: Deps): void {
  bindRoute(app, deps, 'listChannels', async ({ params }) => listChannels(deps.db, params))
  bindRoute(app, deps, 'createChannel', async ({ actor, params, body }) =>
    createChannel(deps, actor, { appId: params.appId, name: body.channel }),
  )
  bindRoute(app, deps, 'deleteChannel', async ({ actor, params }) => {
    await deleteChannel(deps, actor, params)
  })
}
