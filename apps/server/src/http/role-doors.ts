import type { FastifyInstance } from 'fastify'
import type { Config } from '../config.ts'
import { AppError } from '../errors.ts'

const ofEveryRole = new Set(['/healthz', '/readyz', '/metrics'])
/** Besides checks and events, which are answered before they come here. */
const ofDevices = /^\/+downloads\//

/** Without the role `control` only what the others are asked for is open. A load balancer that errs is told by the answer. */
export function closeOtherDoors(app: FastifyInstance, { roles }: Pick<Config, 'roles'>): void {
  if (roles.has('control')) return
  app.addHook('onRequest', async ({ url }) => {
    const path = url.split('?', 1)[0] ?? ''
    if (ofEveryRole.has(path) || (roles.has('device') && ofDevices.test(path))) return
    throw new AppError('not_found', `This instance has the role ${[...roles].join(', ')} only.`)
  })
}
