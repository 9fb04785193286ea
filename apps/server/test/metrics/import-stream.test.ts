import { once } from 'node:events'
import type { ImportActivityResponse } from '@godwit/contract'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { z } from 'zod'
import type { ActivityStore } from '../../src/activity/activity-store.ts'
import { createTestApp } from '../support/publishing.ts'
import { createTestService, type TestAccount, type TestService } from '../support/test-service.ts'
import { open, send } from '../transfers/http.ts'
import { serveMetrics } from './serve-metrics.ts'

const now = '2026-03-18T12:34:56.789Z'

let service: TestService
let owner: TestAccount
let appId: string

beforeAll(async () => {
  service = await createTestService()
  owner = await service.createAccount()
  appId = await createTestApp(owner)
})

afterAll(async () => {
  await service.stop()
})

async function serve(importObservations: ActivityStore['importObservations']) {
  const metrics = await serveMetrics(service, { now, store: { importObservations } })
  const url = `${metrics.baseUrl}/api/v1/apps/${appId}/activity/import`
  return { ...metrics, url, api: metrics.client(owner.apiKey) }
}

/** Takes a line for each newline. */
const countLines: ActivityStore['importObservations'] = async ({ bytes }) => {
  let accepted = 0
  for await (const chunk of bytes) accepted += Buffer.from(chunk).filter((byte) => byte === 10).length
  return { accepted, duplicates: 0, rejected: [], rejectedCount: 0 }
}

function authorization(): Record<string, string> {
  return { authorization: `Bearer ${owner.apiKey}` }
}

describe('POST …/activity/import', () => {
  it.each([
    ['text', 'a\nb\n'],
    ['bytes', new TextEncoder().encode('a\nb\n')],
    ['a stream', new Blob(['a\n', 'b\n']).stream()],
  ])('takes %s through the SDK', async (_name, body) => {
    const metrics = await serve(countLines)
    const answer: z.infer<typeof ImportActivityResponse> = await metrics.api.importActivity({ params: { appId }, body })
    expect(answer).toEqual({ accepted: 2, duplicates: 0, rejected: [], rejected_count: 0 })
    await metrics.stop()
  })

  it('takes more than any other body, without keeping it in memory', async () => {
    const metrics = await serve(countLines)
    const line = Buffer.from(`${'x'.repeat(99)}\n`)
    const chunk = Buffer.concat(Array.from({ length: 10_000 }, () => line))
    async function* generate() {
      for (let index = 0; index < 50; index += 1) yield chunk
    }
    const before = process.memoryUsage().arrayBuffers
    const answer = await send('POST', metrics.url, { headers: authorization(), body: generate() })
    expect(answer.status).toBe(200)
    expect(JSON.parse(answer.body.toString())).toMatchObject({ accepted: 500_000 })
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(40_000_000)
    await metrics.stop()
  })

  it.each(['application/x-ndjson', 'application/json', 'text/plain', 'nonsense', undefined])(
    'reads lines whatever the content type says: %s',
    async (contentType) => {
      const metrics = await serve(countLines)
      const headers = { ...authorization(), ...(contentType === undefined ? {} : { 'content-type': contentType }) }
      const answer = await send('POST', metrics.url, { headers, body: Buffer.from('{}\n') })
      expect(JSON.parse(answer.body.toString())).toMatchObject({ accepted: 1 })
      await metrics.stop()
    },
  )

  it('takes an empty body', async () => {
    const metrics = await serve(countLines)
    expect(await metrics.api.importActivity({ params: { appId }, body: '' })).toMatchObject({ accepted: 0 })
    const answer = await send('POST', metrics.url, { headers: authorization() })
    expect(answer.status).toBe(200)
    await metrics.stop()
  })

  it('tells of the lines that were not taken, the first thousand of them', async () => {
    const rejected = Array.from({ length: 1500 }, (_, index) => ({ line: index + 1, reason: 'is not JSON' }))
    const metrics = await serve(async () => ({ accepted: 1, duplicates: 2, rejected, rejectedCount: 1_000_000 }))
    const answer = await metrics.api.importActivity({ params: { appId }, body: 'x\n' })
    expect(answer).toEqual({
      accepted: 1,
      duplicates: 2,
      rejected: rejected.slice(0, 1000),
      rejected_count: 1_000_000,
    })
    await metrics.stop()
  })

  it('hands on each piece as it arrives', async () => {
    const arrived: string[] = []
    const { promise: isFirstThere, resolve: tell } = Promise.withResolvers<void>()
    const metrics = await serve(async ({ bytes }) => {
      for await (const chunk of bytes) {
        arrived.push(Buffer.from(chunk).toString())
        tell()
      }
      return { accepted: arrived.length, duplicates: 0, rejected: [], rejectedCount: 0 }
    })
    const { request, answer } = open('POST', metrics.url, authorization())
    request.write('first\n')
    await isFirstThere
    request.end('second\n')
    expect((await answer).status).toBe(200)
    expect(arrived).toEqual(['first\n', 'second\n'])
    await metrics.stop()
  })

  it('ends the stream with an error when the client goes away', async () => {
    const { promise: ending, resolve: end } = Promise.withResolvers<unknown>()
    const { promise: isFirstThere, resolve: tell } = Promise.withResolvers<void>()
    const metrics = await serve(async ({ bytes }) => {
      try {
        for await (const _ of bytes) tell()
      } catch (error) {
        end(error)
        throw error
      }
      end(undefined)
      return { accepted: 0, duplicates: 0, rejected: [], rejectedCount: 0 }
    })
    const { request } = open('POST', metrics.url, authorization())
    request.write('first\n')
    await isFirstThere
    request.destroy()
    expect(await ending).toBeInstanceOf(Error)
    await metrics.stop()
  })

  it('does not take the time that storing takes for silence of the client', async () => {
    const timeouts: (number | undefined)[] = []
    const metrics = await serve(async ({ bytes }) => {
      for await (const _ of bytes) timeouts.push(socketTimeout())
      timeouts.push(socketTimeout())
      return { accepted: 0, duplicates: 0, rejected: [], rejectedCount: 0 }
    })
    const server = metrics.server
    let socketTimeout = (): number | undefined => undefined
    server.on('connection', (socket) => {
      socketTimeout = () => socket.timeout
    })
    const { request, answer } = open('POST', metrics.url, authorization())
    await once(request, 'socket')
    request.end('first\n')
    await answer
    expect(timeouts).toEqual([0, 0])
    await metrics.stop()
  })

  it('refuses before it reads', async () => {
    const metrics = await serve(async () => {
      throw new Error('not to be called')
    })
    const stranger = await service.createAccount()
    const body = Buffer.alloc(5_000_000, 'x')
    const without = await send('POST', metrics.url, { body })
    expect(without).toMatchObject({ status: 401, code: 'unauthenticated' })
    const headers = { authorization: `Bearer ${stranger.apiKey}` }
    expect(await send('POST', metrics.url, { headers, body })).toMatchObject({ status: 404, code: 'not_found' })
    await metrics.stop()
  })
})
