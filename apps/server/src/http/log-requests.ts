import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Deps } from '../deps.ts'
import { onRequestEnd } from './on-request-end.ts'

/** One line and one count per request, and its id in every answer. The query is left out: it may carry a signature. */
export function logRequests(app: FastifyInstance, { requests }: Pick<Deps, 'requests'>): void {
  app.addHook('onRequest', async (request, reply) => {
    reply.header('x-request-id', request.id)
  })
  onRequestEnd(app, (request, reply, { status, isAborted }) => {
    const route = templateOf(request)
    requests.of(request.method, route).add(status, reply.elapsedTime / 1000)
    request.log.info(
      {
        method: request.method,
        route,
        path: hideSecrets(request.url.split('?', 1)[0] ?? ''),
        status,
        durationMs: Math.round(reply.elapsedTime * 10) / 10,
        ...(isAborted ? { isAborted } : {}),
      },
      'request',
    )
  })
}

/** As the contract writes it: `/api/v1/apps/{appId}`. */
export function templateOf(request: FastifyRequest): string {
  return (request.routeOptions.url ?? 'none').replaceAll(/:(\w+)/g, '{$1}')
}

/** Links to these carry a secret in the path. Also when no route takes the rest: who has cut the link may still use it. */
function hideSecrets(path: string): string {
  // Other ways to write a letter of the path lead to the same page.
  const plain = path.replaceAll(/%([0-7][0-9a-f])/gi, (_, code: string) =>
    String.fromCharCode(Number.parseInt(code, 16)),
  )
  return plain.replace(/^(\/+(?:invitations|reset-password)\/+)[^/]+/i, '$1…')
}
