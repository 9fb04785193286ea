import type { IncomingMessage } from 'node:http'
import { PassThrough, Readable } from 'node:stream'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { AppError } from '../../src/errors.ts'
import { readRequestBytes, takeBytes } from '../../src/transfers/request-bytes.ts'
import { toForm } from './http.ts'

async function collect(source: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks = []
  for await (const chunk of source) chunks.push(chunk)
  return Buffer.concat(chunks)
}

/** A request, as far as its bytes go, that arrives in pieces of the given sizes. */
function toRequest(body: Buffer, headers: Record<string, string>, sizes: number[]): IncomingMessage {
  const pieces: Buffer[] = []
  for (let start = 0, n = 0; start < body.length; n += 1) {
    const size = sizes[n % sizes.length] ?? body.length
    pieces.push(body.subarray(start, start + size))
    start += size
  }
  return Object.assign(Readable.from(pieces, { objectMode: false }).pipe(new PassThrough()), {
    headers,
  }) as unknown as IncomingMessage
}

const sizes = fc.array(fc.integer({ min: 1, max: 100 }), { minLength: 1, maxLength: 5 })
const content = fc.uint8Array({ maxLength: 500 }).map((bytes) => Buffer.from(bytes))

describe('readRequestBytes', () => {
  it('finds the part named file however the form is cut into pieces', async () => {
    await fc.assert(
      fc.asyncProperty(content, content, sizes, async (bytes, other, cut) => {
        const form = toForm([
          { name: 'before', filename: 'b', bytes: other },
          { name: 'file', filename: 'f', bytes },
          { name: 'after', bytes: other },
        ])
        const { source, contentLength } = readRequestBytes(toRequest(form.body, form.headers, cut))
        expect((await collect(source)).equals(bytes)).toBe(true)
        expect(contentLength).toBeUndefined()
      }),
    )
  })

  it('ends, with the bytes or a refusal, whatever is wrong with the form', async () => {
    const damage = fc.record({ at: fc.nat(400), remove: fc.nat(400), insert: fc.string({ maxLength: 20 }) })
    await fc.assert(
      fc.asyncProperty(content, damage, sizes, async (bytes, { at, remove, insert }, cut) => {
        const { body, headers } = toForm([
          { name: 'note', bytes },
          { name: 'file', filename: 'f', bytes },
        ])
        const damaged = Buffer.concat([body.subarray(0, at), Buffer.from(insert), body.subarray(at + remove)])
        const outcome = await collect(readRequestBytes(toRequest(damaged, headers, cut)).source).catch((error) => error)
        if (!Buffer.isBuffer(outcome)) expect(outcome).toBeInstanceOf(AppError)
      }),
      { numRuns: 500 },
    )
  })

  it('fails when the connection does', async () => {
    const { body, headers } = toForm([{ name: 'file', filename: 'f', bytes: Buffer.alloc(1000) }])
    for (const type of [headers, { 'content-type': 'application/octet-stream' }]) {
      const request = Object.assign(new PassThrough(), { headers: type })
      request.write(body.subarray(0, 500))
      const collected = collect(readRequestBytes(request as unknown as IncomingMessage).source)
      request.destroy()
      await expect(collected).rejects.toThrow('Premature close')
    }
  })
})

describe('takeBytes', () => {
  it('skips, takes, and refuses what is too much after giving what was asked for', async () => {
    await fc.assert(
      fc.asyncProperty(content, sizes, fc.nat(600), fc.nat(600), async (bytes, cut, skipBytes, maxBytes) => {
        const taken: Buffer[] = []
        const source = readRequestBytes(toRequest(bytes, {}, cut)).source
        const consume = async () => {
          for await (const chunk of takeBytes(source, { skipBytes, maxBytes })) taken.push(chunk)
        }
        const isTooMuch = bytes.length > skipBytes + maxBytes
        if (isTooMuch) await expect(consume()).rejects.toMatchObject({ code: 'payload_too_large' })
        else await consume()
        expect(Buffer.concat(taken).equals(bytes.subarray(skipBytes, skipBytes + maxBytes))).toBe(true)
      }),
    )
  })
})
