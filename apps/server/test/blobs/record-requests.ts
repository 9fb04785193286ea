import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, request as startRequest } from 'node:http'
import type { AddressInfo } from 'node:net'

export type RequestRecorder = {
  endpoint: string
  requests: { method: string; url: string; headers: IncomingHttpHeaders }[]
  /** Lets this many more requests through, and breaks off the connections of all that follow. */
  failAfter: (count: number) => void
  hasFailed: () => boolean
  stop: () => Promise<void>
}

/** Passes on what comes as it is, so that signatures stay right, and writes it down. */
export async function recordRequests(endpoint: string): Promise<RequestRecorder> {
  const requests: RequestRecorder['requests'] = []
  let left = Number.POSITIVE_INFINITY
  let hasFailed = false
  const server = createServer((request, response) => {
    const { method = '', url = '', headers } = request
    requests.push({ method, url, headers })
    if (left <= 0) {
      hasFailed = true
      request.destroy()
      return
    }
    left -= 1
    const passedOn = startRequest(endpoint + url, { method, headers, agent: false }, (answer) => {
      response.writeHead(answer.statusCode ?? 0, answer.headers)
      answer.pipe(response)
    })
    passedOn.on('error', () => response.destroy())
    request.pipe(passedOn)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    failAfter(count) {
      left = count
      hasFailed = false
    },
    hasFailed: () => hasFailed,
    async stop() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
