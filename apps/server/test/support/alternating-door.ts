import { once } from 'node:events'
import { createServer, request as send } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A load balancer that hands each request to another server than the one before. */
export type AlternatingDoor = {
  baseUrl: string
  /** To be set before the first request. */
  targets: string[]
  /** How many requests each of them got. */
  handed: number[]
  stop: () => Promise<void>
}

export async function startAlternatingDoor(): Promise<AlternatingDoor> {
  const targets: string[] = []
  const handed: number[] = []
  let next = 0
  const server = createServer((request, response) => {
    const index = next % targets.length
    next += 1
    handed[index] = (handed[index] ?? 0) + 1
    const { method = 'GET', headers, url = '/' } = request
    const passed = send(new URL(url, targets[index]), { method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.rawHeaders)
      answer.pipe(response)
    })
    passed.on('error', () => response.destroy())
    request.pipe(passed)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    targets,
    handed,
    stop: async () => {
      server.close().closeAllConnections()
      await once(server, 'close')
    },
  }
}
