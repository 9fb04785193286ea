import { once } from 'node:events'
import { type AddressInfo, connect } from 'node:net'
import Fastify, { type FastifyInstance } from 'fastify'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { getRawBody, limitBodyTime, parseAnyContentType } from '../../src/http/bodies.ts'
import { handleErrors } from '../../src/http/error-handler.ts'

let app: FastifyInstance
let port: number

beforeAll(async () => {
  app = Fastify()
  handleErrors(app)
  parseAnyContentType(app)
  limitBodyTime(app, 100)
  app.post('/', async (request) => getRawBody(request))
  await app.listen({ port: 0, host: '127.0.0.1' })
  port = (app.server.address() as AddressInfo).port
})
afterAll(() => app.close())

async function post(body: string, contentType?: string) {
  const headers = contentType === undefined ? {} : { 'content-type': contentType }
  const response = await app.inject({ method: 'POST', url: '/', headers, payload: body })
  return { status: response.statusCode, body: response.json() }
}

describe('a body', () => {
  it.each([['application/json'], ['text/plain; charset=utf-8'], ['application/octet-stream'], ['nonsense']])(
    'is JSON when it is called %s',
    async (contentType) => {
      expect(await post('{"a":1}', contentType)).toEqual({ status: 200, body: { kind: 'json', value: { a: 1 } } })
    },
  )

  it('is a form when it is multipart/form-data; a file in it is read past', async () => {
    const form = new FormData()
    form.set('arch', 'aab')
    form.set('file', new Blob(['bytes']), 'a.aab')
    form.set('size', '5')
    const encoded = new Request('http://localhost', { method: 'POST', body: form })
    const answer = await post(await encoded.text(), encoded.headers.get('content-type') ?? '')
    expect(answer).toEqual({ status: 200, body: { kind: 'form', value: { arch: 'aab', size: '5' } } })
  })

  it.each([
    [
      'cut in the middle',
      'multipart/form-data; boundary=x',
      '--x\r\nContent-Disposition: form-data; name="a"\r\n\r\nb',
    ],
    ['without a boundary', 'multipart/form-data', '--x--'],
  ])('that is a form %s is a 400', async (_name, contentType, body) => {
    expect(await post(body, contentType)).toMatchObject({ status: 400, body: { code: 'invalid_request' } })
  })

  it('that does not arrive in time is a 408, and the connection is closed', async () => {
    const socket = connect(port, '127.0.0.1')
    let answer = ''
    socket.on('data', (chunk) => {
      answer += chunk
    })
    socket.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"a":')
    await once(socket, 'close')
    expect(answer).toMatch(/^HTTP\/1\.1 408 /)
    expect(answer).toContain('"code":"request_timeout"')
  })
})
