import type { FastifyInstance } from 'fastify'

/** One line per request, and its id in every answer. The query is left out: it may carry a signature. */
export function logRequests(app: FastifyInstance): void {
  app.addHook('onRequest', async (request, reply) => {
    reply.header('x-request-id', request.id)
  })
  app.addHook('onResponse', async (request, reply) => {
    request.log.info(
      {
        method: request.method,
        path: hideSecrets(request.url.split('?', 1)[0] ?? ''),
        status: reply.statusCode,
        durationMs: Math.round(reply.elapsedTime * 10) / 10,
      },
      'request',
    )
  })
}

/** Links to these carry a secret in the path. Also when no route takes the rest: who has cut the link may still use it. */
function hideSecrets(path: string): string {
  return path.replace(/^(\/+(?:invitations|reset-password)\/+)[^/]+/, '$1…')
}
