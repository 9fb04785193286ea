import { Agent, request as start } from 'node:http'

export type Answer = { status: number; retryAfter: string | undefined; body: Buffer; durationMs: number }

/** Nobody waits longer for an app to start. */
const timeoutMs = 10_000

/** Asks without ever asking again: a client that repeats in silence would hide what this suite looks for. */
export function createAsker(connections: number, localAddress?: string) {
  const from = localAddress === undefined ? {} : { localAddress }
  const agent = new Agent({ keepAlive: true, maxSockets: connections, ...from })
  const ask = (method: string, url: string, body?: string | Uint8Array, headers: Record<string, string> = {}) =>
    new Promise<Answer>((resolve, reject) => {
      const sentMs = performance.now()
      const length = body === undefined ? 0 : Buffer.byteLength(body)
      const options = { method, agent, headers: { ...headers, 'content-length': length }, timeout: timeoutMs }
      const request = start(url, options, (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('error', reject)
        response.on('end', () =>
          resolve({
            status: response.statusCode ?? 0,
            retryAfter: response.headers['retry-after'],
            body: Buffer.concat(chunks),
            durationMs: performance.now() - sentMs,
          }),
        )
      })
      request.on('timeout', () => request.destroy(new Error(`no answer in ${timeoutMs / 1000} s`)))
      request.on('error', (error: NodeJS.ErrnoException) => reject(new Error(error.code ?? error.message)))
      request.end(body)
    })
  return { ask, close: () => agent.destroy() }
}

export type Asker = ReturnType<typeof createAsker>
