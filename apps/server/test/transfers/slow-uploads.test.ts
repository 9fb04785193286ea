import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setInterval as every } from 'node:timers'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { AppError } from '../../src/errors.ts'
import { receiveUpload } from '../../src/transfers/actions.ts'
import { readRequestBytes } from '../../src/transfers/request-bytes.ts'
import { createTestService, type TestService } from '../support/test-service.ts'
import { createPublisher, findReceivedBytes, type Publisher } from './artifacts.ts'
import { open, putChunk, toForm } from './http.ts'

const rate = { windowMs: 300, bytes: 1000 }

let service: TestService
let publisher: Publisher
let server: Server
let baseUrl: string

/** Takes uploads as the service does, but with little patience. */
beforeAll(async () => {
  service = await createTestService()
  publisher = await createPublisher(await service.createAccount())
  server = createServer(async (request, response) => {
    try {
      const answer = await receiveUpload(service.deps, {
        blobKey: new URL(request.url ?? '', 'http://x').pathname.split('/').at(-1) ?? '',
        bytes: readRequestBytes(request, rate),
        contentRange: request.headers['content-range'],
        from: { address: undefined, userAgent: undefined, correlationId: undefined },
      })
      response.statusCode = answer.isComplete ? 200 : 308
    } catch (error) {
      response.statusCode = error instanceof AppError ? error.status : 500
    }
    response.end()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterAll(async () => {
  server.closeAllConnections()
  server.close()
  await service.stop()
})

const atImpatient = (url: string) => baseUrl + new URL(url).pathname

/** Sends so many bytes every 20 ms until it is answered. */
async function trickle(request: ReturnType<typeof open>, bytes: Buffer, stepBytes: number) {
  let sent = 0
  const timer = every(() => {
    if (sent >= bytes.length) return
    request.request.write(bytes.subarray(sent, sent + stepBytes))
    sent += stepBytes
  }, 20)
  const answer = await request.answer.finally(() => clearInterval(timer))
  return { ...answer, sent }
}

describe('an upload that trickles', () => {
  it('is cut with 408 after its grace, keeps what has arrived of its chunk, and goes on from there', async () => {
    const bytes = randomBytes(10_000)
    const { url, key } = await publisher.registerRelease(bytes)
    const headers = { 'content-range': `bytes 0-9999/10000`, 'content-length': 10_000 }
    const { status } = await trickle(open('PUT', atImpatient(url), headers), bytes, 1)
    expect(status).toBe(408)
    const kept = (await findReceivedBytes(service, key)) ?? 0
    expect(kept).toBeGreaterThan(0)
    expect(kept).toBeLessThan(1000)
    expect(await putChunk(url, bytes, kept, 9999)).toMatchObject({ status: 200 })
  })

  it('is cut in a form too', async () => {
    const bytes = randomBytes(10_000)
    const { url } = await publisher.registerPatch(bytes)
    const form = toForm([{ name: 'file', filename: 'f', bytes }])
    const headers = { ...form.headers, 'content-length': form.body.length }
    expect(await trickle(open('POST', atImpatient(url), headers), form.body, 2)).toMatchObject({ status: 408 })
  })

  it('is let be when it is slow, but not as slow as that', async () => {
    const bytes = randomBytes(10_000)
    const { url } = await publisher.registerRelease(bytes)
    const headers = { 'content-range': `bytes 0-9999/10000`, 'content-length': 10_000 }
    expect(await trickle(open('PUT', atImpatient(url), headers), bytes, 250)).toMatchObject({ status: 200 })
  })
})
