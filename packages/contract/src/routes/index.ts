import type { Route } from '../route.ts'
import { appRoutes, channelRoutes, collaboratorRoutes } from './apps.ts'
import { deviceRoutes } from './devices.ts'
import { metricsRoutes } from './metrics.ts'
import { organizationRoutes } from './organizations.ts'
import { patchRoutes } from './patches.ts'
import { releaseRoutes } from './releases.ts'
import { diagnosticsRoutes, serviceRoutes } from './service.ts'
import { serviceAccountRoutes } from './service-accounts.ts'
import { transferRoutes } from './transfers.ts'
import { userRoutes } from './users.ts'

/** The whole API by operation id. */
export const routes = {
  ...userRoutes,
  ...organizationRoutes,
  ...serviceAccountRoutes,
  ...appRoutes,
  ...collaboratorRoutes,
  ...channelRoutes,
  ...releaseRoutes,
  ...patchRoutes,
  ...deviceRoutes,
  ...metricsRoutes,
  ...diagnosticsRoutes,
  ...transferRoutes,
  ...serviceRoutes,
} satisfies Record<string, Route>

export type Routes = typeof routes
export type OperationId = keyof Routes
export const operationIds = Object.keys(routes) as OperationId[]
