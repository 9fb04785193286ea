import type { IncomingMessage } from 'node:http'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Deps } from '../deps.ts'
import { refuseOverLimit } from '../http/rate-limit.ts'
import { readBrowserSession } from '../sign-in/browser-session.ts'
import { rememberTypedCode } from './device-pages.ts'
import type { AuthorizationServer } from './provider.ts'

/** What the library answers by itself. The pages of an interaction are ours: `interactions.ts`. */
const paths = [
  '/oauth/*',
  '/device',
  '/device/*',
  '/.well-known/openid-configuration',
  '/.well-known/oauth-authorization-server',
  '/.well-known/jwks.json',
]

/** Hands these paths to the library, body unread. */
export function registerAuthorizationServerRoutes(
  app: FastifyInstance,
  deps: Deps,
  authorizationServer: AuthorizationServer,
): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, _payload, done) => done(null))
  for (const url of paths) {
    app.route({
      method: ['GET', 'POST', 'OPTIONS'],
      url,
      handler: (request, reply) => answerByProvider(deps, authorizationServer, request, reply),
    })
  }
}

async function answerByProvider(
  deps: Deps,
  authorizationServer: AuthorizationServer,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  refuseOverLimit(authorizationServer.rateLimiter.take(request.ip))
  const provider = await authorizationServer.getProvider()
  authorizationServer.browserSessions.set(request.raw, await readBrowserSession(deps, request))
  prepareRequest(request.raw, deps.config.publicUrl)
  rememberTypedCode(request.raw)
  reply.hijack()
  for (const [name, value] of Object.entries(reply.getHeaders())) {
    if (value !== undefined) reply.raw.setHeader(name, value)
  }
  await provider.callback()(request.raw, reply.raw)
}

/** The library builds its URLs from the request: it is shown the public one, whatever a proxy in between made of it. */
export function prepareRequest(request: IncomingMessage, publicUrl: string): void {
  const url = new URL(publicUrl)
  request.headers.host = url.host
  delete request.headers['x-forwarded-host']
  request.headers['x-forwarded-proto'] = url.protocol.slice(0, -1)
}
