import type { RequestListener } from 'node:http'
import Fastify, { type FastifyBaseLogger, type FastifyInstance, LogController } from 'fastify'
import { registerApiKeyRoutes } from './api-keys/routes.ts'
import { registerAppRoutes } from './apps/routes.ts'
import { registerAuditRoutes } from './audit/routes.ts'
import { registerInteractionPages } from './authorization-server/interactions.ts'
import { createAuthorizationServer } from './authorization-server/provider.ts'
import { registerAuthorizationServerRoutes } from './authorization-server/routes.ts'
import { registerChannelRoutes } from './channels/routes.ts'
import { registerCollaboratorRoutes } from './collaborators/routes.ts'
import { registerCommandLineSignInPages } from './command-line-sign-in/pages.ts'
import { registerTokenRoutes } from './command-line-sign-in/token-routes.ts'
import type { Deps } from './deps.ts'
import { createDeviceDoor } from './devices/device-door.ts'
import { registerDiagnosticsRoutes } from './diagnostics/routes.ts'
import { bodyTimeoutMs, limitBodyTime, parseAnyContentType } from './http/bodies.ts'
import { drainRequests } from './http/drain-request.ts'
import { answerClientError, handleErrors, sendError } from './http/error-handler.ts'
import { createHttpServer, type HttpServer } from './http/http-server.ts'
import { logRequests } from './http/log-requests.ts'
import { brakeRefusals, createRefusalBrake } from './http/refusal-brake.ts'
import { chooseRequestId } from './http/request-id.ts'
import { closeOtherDoors } from './http/role-doors.ts'
import { traceRequests } from './http/trace-requests.ts'
import { registerIdentityProviderPages } from './identity-providers/routes.ts'
import { registerInvitationRoutes } from './invitations/routes.ts'
import { registerImportRoutes } from './metrics/import-routes.ts'
import { registerMetricsRoutes } from './metrics/routes.ts'
import { registerOrganizationRoutes } from './organizations/routes.ts'
import { registerPatchRoutes } from './patches/routes.ts'
import { registerReleaseRoutes } from './releases/routes.ts'
import { registerServiceRoutes } from './service/routes.ts'
import { registerServiceAccountRoutes } from './service-accounts/routes.ts'
import { registerSignInPages } from './sign-in/routes.ts'
import { registerTransferRoutes } from './transfers/routes.ts'
import { registerTrustRuleRoutes } from './trust-rules/routes.ts'
import { registerUserRoutes } from './users/routes.ts'

export type App = {
  http: FastifyInstance
  /** The device door and, behind it, everything else: what the HTTP server calls for each request. */
  dispatch: RequestListener
}

/** Builds the whole service without a port. A `server` that listens already goes on with what answered before, until it is told. */
export async function buildApp(deps: Deps, server?: HttpServer): Promise<App> {
  let dispatch: RequestListener | undefined
  const brake = createRefusalBrake()
  const http: FastifyInstance = Fastify({
    loggerInstance: deps.log as FastifyBaseLogger,
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: chooseRequestId,
    requestIdHeader: false,
    trustProxy: deps.config.trustedProxies,
    frameworkErrors: sendError,
    clientErrorHandler: answerClientError,
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    routerOptions: { ignoreDuplicateSlashes: true, maxParamLength: 256 },
    // The body limit of each kind of body is set where that kind is parsed.
    bodyLimit: Number.MAX_SAFE_INTEGER,
    serverFactory: (behind) => {
      const door = deps.config.roles.has('device') ? createDeviceDoor(deps, behind, brake) : behind
      dispatch = closeConnectionsWhenStopping(deps, door)
      return (server ?? createHttpServer(dispatch)).server
    },
  })
  handleErrors(http)
  traceRequests(http, deps)
  logRequests(http, deps)
  brakeRefusals(http, brake)
  drainRequests(http)
  closeOtherDoors(http, deps.config)

  http.register(async (control) => {
    parseAnyContentType(control)
    limitBodyTime(control, bodyTimeoutMs)
    registerServiceRoutes(control, deps)
    registerUserRoutes(control, deps)
    registerApiKeyRoutes(control, deps)
    registerOrganizationRoutes(control, deps)
    registerInvitationRoutes(control, deps)
    registerAuditRoutes(control, deps)
    registerServiceAccountRoutes(control, deps)
    registerTrustRuleRoutes(control, deps)
    registerAppRoutes(control, deps)
    registerCollaboratorRoutes(control, deps)
    registerChannelRoutes(control, deps)
    registerReleaseRoutes(control, deps)
    registerPatchRoutes(control, deps)
    registerMetricsRoutes(control, deps)
    registerDiagnosticsRoutes(control, deps)
  })
  http.register(async (transfer) => registerTransferRoutes(transfer, deps))
  http.register(async (activity) => registerImportRoutes(activity, deps))
  const authorizationServer = createAuthorizationServer(deps)
  http.register(async (pages) => {
    await registerSignInPages(pages, deps)
    registerIdentityProviderPages(pages, deps)
    registerCommandLineSignInPages(pages, deps)
    registerInteractionPages(pages, deps, authorizationServer)
    pages.register(async (standard) => registerAuthorizationServerRoutes(standard, deps, authorizationServer))
  })
  http.register(async (tokens) => await registerTokenRoutes(tokens, deps))
  await http.ready()
  if (dispatch === undefined) throw new Error('Fastify did not ask for its server')
  return { http, dispatch }
}

/** A request that arrives while the server stops is answered, and its connection then closed: no client meets a reset. */
function closeConnectionsWhenStopping(deps: Deps, door: RequestListener): RequestListener {
  return (request, response) => {
    if (!deps.isServing()) response.shouldKeepAlive = false
    door(request, response)
  }
}
