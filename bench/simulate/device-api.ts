import { Agent, request as requestHttp } from 'node:http'
import { request as requestHttps, Agent as SecureAgent } from 'node:https'
import type { PatchCheckResponse } from '@godwit/contract'
import { patchNumberLimit } from './devices.ts'

/** An answer that takes longer is an error: nobody waits so long for an app to start. */
const timeoutMs = 10_000

/** What a device asks of a server. All of them reject with an error whose message says what went wrong, in few kinds. */
export type DeviceApi = {
  check: (body: object) => Promise<PatchCheckResponse>
  report: (event: object) => Promise<void>
  download: (url: string) => Promise<void>
  close: () => void
}

/** On kept-alive connections, so that a machine with few ports can play many devices. */
export function createDeviceApi(baseUrl: string, connections: number): DeviceApi {
  const isSecure = baseUrl.startsWith('https:')
  const agent = new (isSecure ? SecureAgent : Agent)({ keepAlive: true, maxSockets: connections })
  const start = isSecure ? requestHttps : requestHttp

  const post = async (path: string, body: string, isRepeated = false): Promise<string> => {
    const { promise, resolve, reject } = Promise.withResolvers<string>()
    const headers = { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) }
    const request = start(`${baseUrl}${path}`, { method: 'POST', agent, headers, timeout: timeoutMs }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('error', reject)
      response.on('end', () => {
        const status = response.statusCode ?? 0
        if (status < 200 || status > 299) reject(new Error(`HTTP ${status}`))
        else resolve(Buffer.concat(chunks).toString('utf8'))
      })
    })
    request.on('timeout', () => request.destroy(new Error(`no answer in ${timeoutMs / 1000} s`)))
    request.on('error', (error: NodeJS.ErrnoException) => {
      // The server may close a connection that has been idle at the moment when it is used again.
      const isLostWhileIdle = request.reusedSocket && error.code === 'ECONNRESET' && !isRepeated
      if (isLostWhileIdle) post(path, body, true).then(resolve, reject)
      else reject(new Error(error.code ?? error.message))
    })
    request.end(body)
    return await promise
  }
  return {
    check: async (body) => readAnswer(await post('/api/v1/patches/check', JSON.stringify(body))),
    report: async (event) => {
      await post('/api/v1/patches/events', JSON.stringify({ event }))
    },
    download,
    close: () => agent.destroy(),
  }
}

/** By hand: the contract's schemas would double the memory of a small run. */
function readAnswer(text: string): PatchCheckResponse {
  const answer = parseJson(text) as Partial<PatchCheckResponse> | null | undefined
  const { patch_available, patch, rolled_back_patch_numbers = [] } = answer ?? {}
  const isUsable =
    typeof patch_available === 'boolean' &&
    (!patch_available || (isPatchNumber(patch?.number) && typeof patch?.download_url === 'string')) &&
    Array.isArray(rolled_back_patch_numbers) &&
    rolled_back_patch_numbers.every(isPatchNumber)
  if (!isUsable) throw new Error('an answer that no device understands')
  if ((patch?.number ?? 0) >= patchNumberLimit) throw new Error('a patch number that is not simulated')
  return answer as PatchCheckResponse
}

function isPatchNumber(value: unknown): boolean {
  return Number.isInteger(value) && (value as number) >= 0
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

async function download(url: string): Promise<void> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(timeoutMs * 6) })
    for await (const _ of response.body ?? []);
    if (response.status !== 200) throw new Error(`HTTP ${response.status}`)
  } catch (error) {
    throw new Error(`download: ${error instanceof Error ? error.message : error}`)
  }
}
