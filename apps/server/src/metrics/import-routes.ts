import type { Socket } from 'node:net'
import { maxRejectedLines } from '@godwit/contract'
import type { FastifyInstance } from 'fastify'
import type { Deps } from '../deps.ts'
import { bindRoute } from '../http/bind.ts'
import { leaveBodiesUnread } from '../http/bodies.ts'
import { readRequestBytes } from '../transfers/request-bytes.ts'

/** The import door: bodies are streams here, without a limit in size or time. */
export function registerImportRoutes(app: FastifyInstance, deps: Deps): void {
  leaveBodiesUnread(app)
  bindRoute(app, deps, 'importActivity', async ({ params, request }) => {
    const { source } = readRequestBytes(request.raw)
    const bytes = holdIdleTimeout(source, request.raw.socket, app.server.timeout)
    const { accepted, duplicates, rejected, rejectedCount } = await deps.activityStore.importObservations({
      ...params,
      bytes,
    })
    return { accepted, duplicates, rejected: rejected.slice(0, maxRejectedLines), rejected_count: rejectedCount }
  })
}

/** A client that sends nothing is idle; one that waits while what it sent is stored is not. */
async function* holdIdleTimeout(source: AsyncIterable<Buffer>, socket: Socket, idleTimeoutMs: number) {
  for await (const chunk of source) {
    socket.setTimeout(0)
    yield chunk
    socket.setTimeout(idleTimeoutMs)
  }
  // Until the answer. The server sets it again for the next request.
  socket.setTimeout(0)
}
