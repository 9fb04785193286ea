import { once } from 'node:events'
import { createServer, type Server, type ServerResponse } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { ErrorResponse } from '@godwit/contract'
import pino from 'pino'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Deps } from '../../src/deps.ts'
import { createDeviceDoor } from '../../src/devices/device-door.ts'
import { readBody } from '../../src/devices/read-body.ts'
import { createRefusalBrake } from '../../src/http/refusal-brake.ts'
import { createRequestDurations } from '../../src/http/request-durations.ts'

const path = '/api/v1/patches/check'
const check = { app_id: 'a', channel: 'stable', release_version: '1', platform: 'android', arch: 'aarch64' }
const event = { ...check, client_id: 'c', type: 't', patch_number: 1, timestamp: 1_790_000_000 }

const logged: string[] = []
const recorded: unknown[] = []
let deps: Deps
let server: Server
let port: number

/** The door alone. What it asks is scripted by the app id, so that every kind of answer can be had at any time. */
beforeAll(async () => {
  deps = {
    config: { requestsPerMinute: undefined },
    log: pino({}, { write: (line: string) => logged.push(line) }),
    deviceIndex: {
      hasApp: () => true,
      answer: ({ app_id }: { app_id: string }) => {
        if (app_id === 'broken') throw new Error('secret reason')
        const slow = { text: '{"slow":1}', rolledBack: [1] }
        if (app_id === 'slow') return new Promise((resolve) => setTimeout(resolve, 20, slow))
        return { text: '{"patch_available":false}', rolledBack: app_id === 'unknown' ? undefined : [] }
      },
    },
    requests: createRequestDurations(),
    recorder: {
      recordCheck: ({ app_id }: { app_id: string }, rolledBack: number[]) => recorded.push([app_id, rolledBack]),
      storeEvent: async () => undefined,
    },
  } as unknown as Deps
  server = createServer(createDeviceDoor(deps, behind, createRefusalBrake()))
  port = await listen(server)
})
afterAll(() => server.close())

function behind(_request: unknown, response: ServerResponse): void {
  response.writeHead(404).end()
}

async function listen(created: Server): Promise<number> {
  created.listen(0, '127.0.0.1')
  await once(created, 'listening')
  return (created.address() as AddressInfo).port
}

async function post(body: RequestInit['body'], init: RequestInit & { path?: string } = {}) {
  const response = await fetch(`http://127.0.0.1:${port}${init.path ?? path}`, { method: 'POST', body, ...init })
  const answer = await response.text()
  return { status: response.status, headers: response.headers, body: answer === '' ? undefined : JSON.parse(answer) }
}

async function open(to = port): Promise<Socket> {
  const socket = connect(to, '127.0.0.1')
  await once(socket, 'connect')
  return socket
}

function encode(body: string, headers = `content-length: ${Buffer.byteLength(body)}`): string {
  return `POST ${path} HTTP/1.1\r\nhost: x\r\n${headers}\r\n\r\n${body}`
}

describe('a malformed body', () => {
  it.each<[string, string]>([
    ['nothing', ''],
    ['no JSON', '{"app_id":'],
    ['a byte order mark', `\ufeff${JSON.stringify(check)}`],
    ['null', 'null'],
    ['a list', '[]'],
    ['a text', '"x"'],
    ['an endless nesting', '['.repeat(500_000)],
  ])('that is %s is a 400', async (_name, body) => {
    const answer = await post(body)
    expect(answer.status).toBe(400)
    expect(ErrorResponse.parse(answer.body)).toMatchObject({ code: 'invalid_request' })
    expect(answer.body.details).toMatch(/^body: /)
  })

  it.each<[string, unknown]>([
    ['app_id', undefined],
    ['app_id', 7],
    ['channel', null],
    ['channel', 'a\0b'],
    ['release_version', ['1']],
    ['release_version', '\ud800'],
    ['platform', 'fuchsia'],
    ['platform', 'Android'],
    ['arch', false],
    ['client_id', 1],
    ['patch_number', -1],
    ['patch_number', 1.5],
    ['patch_number', '1'],
    ['current_patch_number', 2 ** 53],
    ['patch_hash', {}],
  ])('whose %s is %j is a 400 that names the field', async (field, value) => {
    const answer = await post(JSON.stringify({ ...check, [field]: value }))
    expect(answer.status).toBe(400)
    expect(answer.body.details).toMatch(new RegExp(`^${field}: `))
  })

  it('names all its fields at once, and those of an event by their path', async () => {
    expect((await post('{}')).body.details).toMatch(/app_id: .*channel: .*release_version: .*platform: .*arch: /)
    const events = { path: '/api/v1/patches/events' }
    const answer = await post(JSON.stringify({ event: { ...event, timestamp: 'now' } }), events)
    expect(answer).toMatchObject({ status: 400, body: { details: expect.stringMatching(/^event\.timestamp: /) } })
    expect(await post(JSON.stringify({ event }), events)).toMatchObject({ status: 204, body: undefined })
  })
})

describe('a body', () => {
  const mebibyte = 1024 ** 2

  it('may have 1 MiB', async () => {
    expect((await post(JSON.stringify(check).padEnd(mebibyte))).status).toBe(200)
  })

  it('of more is a 413, whether it tells its size or not, and whatever is still to come', async () => {
    const large = JSON.stringify(check).padEnd(mebibyte * 4)
    expect(await post(large)).toMatchObject({ status: 413, body: { code: 'payload_too_large' } })
    const chunked = { body: new Blob([large]).stream(), duplex: 'half' } as RequestInit
    expect(await post(undefined, chunked)).toMatchObject({ status: 413 })
  })

  it('may arrive byte by byte', async () => {
    const socket = await open()
    const answer = once(socket, 'data')
    for (const byte of Buffer.from(encode(JSON.stringify(check)))) {
      await new Promise((resolve) => socket.write(Buffer.of(byte), resolve))
    }
    expect(String((await answer)[0])).toMatch(/^HTTP\/1.1 200 /)
    socket.destroy()
  })

  it('that does not come in time is a 408, and the connection is closed', async () => {
    const impatient = createServer((request, response) => {
      const limits = { maxBytes: 10, timeoutMs: 50 }
      const fail = ({ status }: { status: number }) => response.writeHead(status, { connection: 'close' }).end()
      readBody(request, limits, () => response.end(), fail)
    })
    const impatientPort = await listen(impatient)
    for (const [body, status] of [
      ['', 408],
      ['{', 408],
      ['too much, and then nothing', 413],
    ] as const) {
      const socket = await open(impatientPort)
      socket.write(encode(body, 'content-length: 99'))
      expect(await text(socket)).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
    }
    impatient.close()
  })

  it('whose sender goes away leaves nothing behind', async () => {
    for (let client = 0; client < 20; client += 1) {
      const socket = await open()
      socket.write(encode('{"app_id"', 'content-length: 1000'))
      if (client % 2 === 0) socket.resetAndDestroy()
      else socket.destroy()
    }
    const countConnections = () => new Promise((resolve) => server.getConnections((_error, count) => resolve(count)))
    server.closeIdleConnections()
    await expect.poll(countConnections).toBe(0)
    expect((await post(JSON.stringify(check))).status).toBe(200)
  })
})

describe('a check is recorded', () => {
  it('once it is answered, and not of an unknown app, malformed or failed', async () => {
    recorded.length = 0
    for (const app_id of ['a', 'slow', 'unknown', 'broken']) await post(JSON.stringify({ ...check, app_id }))
    await post(JSON.stringify({ ...check, platform: 'fuchsia' }))
    expect(recorded).toEqual([
      ['a', []],
      ['slow', [1]],
    ])
  })
})

describe('the door', () => {
  it('answers pipelined requests in their order', async () => {
    const socket = await open()
    const slow = JSON.stringify({ ...check, app_id: 'slow' })
    const last = encode('{', 'content-length: 1\r\nconnection: close')
    socket.write(encode(slow) + encode(JSON.stringify(check)) + last)
    const answers = await text(socket)
    expect(answers.match(/HTTP\/1.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 200', 'HTTP/1.1 400'])
    expect(answers.indexOf('slow')).toBeLessThan(answers.indexOf('patch_available'))
  })

  it.each(['GET', 'HEAD', 'PUT', 'OPTIONS'])('leaves %s to what is behind it', async (method) => {
    expect((await post(undefined, { method })).status).toBe(404)
  })

  it.each(['/api/v1/patches', '/api/v1/patches/check/', '/api/v1/patches/checks', '/'])(
    'leaves %s to what is behind it',
    async (other) => {
      expect((await post('{}', { path: other })).status).toBe(404)
    },
  )

  it.each(['//api//v1/patches///check', '/api/v1/patches/check?', '/api/v1/patches/check?a=/b//c'])(
    'knows %s',
    async (other) => {
      expect((await post(JSON.stringify(check), { path: other })).status).toBe(200)
    },
  )

  it('takes JSON under any content type', async () => {
    for (const type of ['text/plain', 'multipart/form-data', 'application/json; charset=utf-8', 'nonsense']) {
      expect((await post(JSON.stringify(check), { headers: { 'content-type': type } })).status).toBe(200)
    }
  })

  it('tells the request id of a failure and nothing else, and logs the reason under it', async () => {
    logged.length = 0
    const headers = { 'x-request-id': 'launch-42' }
    const answer = await post(JSON.stringify({ ...check, app_id: 'broken' }), { headers })
    expect(answer).toMatchObject({ status: 500, body: { code: 'internal', details: 'request id launch-42' } })
    expect(answer.headers.get('x-request-id')).toBe('launch-42')
    expect(JSON.stringify(answer.body)).not.toContain('secret')
    expect(logged.map((line) => JSON.parse(line))).toMatchObject([
      { reqId: 'launch-42', err: { message: 'secret reason' } },
    ])
  })

  it('puts no request id into an answer that could not stand in a log line', async () => {
    const answer = await post(JSON.stringify(check), { headers: { 'x-request-id': 'a b"c' } })
    expect(answer.headers.get('x-request-id')).toMatch(/^[\w-]{36}$/)
  })
})

describe('a device that asks on after it was refused', () => {
  it('hears the next refusals late, of which the durations of the service tell nothing', async () => {
    const config = { ...deps.config, requestsPerMinute: 5 }
    const requests = createRequestDurations()
    const limited = createServer(createDeviceDoor({ ...deps, config, requests }, behind, createRefusalBrake()))
    const url = `http://127.0.0.1:${await listen(limited)}${path}`
    const body = JSON.stringify({ ...check, client_id: 'greedy' })
    const ask = async () => {
      const askedAt = performance.now()
      const { status } = await fetch(url, { method: 'POST', body })
      return { status, isLate: performance.now() - askedAt > 450 }
    }
    const answers = await Promise.all(Array.from({ length: 80 }, ask))
    limited.close()
    // A minute may end in between, and the next one begin.
    expect(answers.filter(({ status }) => status === 200).length).toSatisfy((count: number) => [5, 10].includes(count))
    expect(answers.filter(({ status, isLate }) => status === 429 && isLate).length).toBeGreaterThan(0)
    const refused = requests.list().find(({ status }) => status === '4xx')
    expect(refused?.durations.read().sum).toBeLessThan(10)
  })
})
