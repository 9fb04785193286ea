import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { Busboy, type BusboyFileStream } from '@fastify/busboy'
import { AppError } from '../errors.ts'
import { isMultipart } from '../http/bodies.ts'

export type RequestBytes = {
  source: AsyncIterable<Buffer>
  /** How many bytes the source will have, when the client said so. */
  contentLength: number | undefined
}

/** What must come while its receiver waits for so long. The slowest uplinks of phones are several times faster. */
export type LeastRate = { windowMs: number; bytes: number }
const leastRate: LeastRate = { windowMs: 60_000, bytes: 60 * 1024 }

/** The bytes that a request carries: its part `file`, or the body as it is. Fails when they come too slowly. */
export function readRequestBytes(raw: IncomingMessage, rate = leastRate): RequestBytes {
  const contentType = raw.headers['content-type'] ?? ''
  const body = requireRate(readBody(raw), rate)
  if (isMultipart(contentType)) return { source: readFilePart(body, contentType), contentLength: undefined }
  const contentLength = raw.headers['content-length']
  return { source: body, contentLength: contentLength === undefined ? undefined : Number(contentLength) }
}

/** Leaves the request readable when its reader stops early, so that the rest can be drained. */
function readBody(raw: IncomingMessage): AsyncIterable<Buffer> {
  return { [Symbol.asyncIterator]: () => raw.iterator({ destroyOnReturn: false }) as AsyncIterator<Buffer> }
}

/**
 * Ends a body that trickles: byte by byte, a few clients could hold connections and uploads for days. Only the wait for the
 * client counts, not what a slow store takes. One that is silent altogether meets the connection's idle timeout.
 */
async function* requireRate(source: AsyncIterable<Buffer>, rate: LeastRate): AsyncGenerator<Buffer> {
  let waitedMs = 0
  let arrivedBytes = 0
  let waitsSinceMs = performance.now()
  for await (const piece of source) {
    waitedMs += performance.now() - waitsSinceMs
    arrivedBytes += piece.length
    if (waitedMs >= rate.windowMs) {
      if (arrivedBytes < rate.bytes) throw new AppError('request_timeout', 'the body comes too slowly')
      waitedMs = 0
      arrivedBytes = 0
    }
    yield piece
    waitsSinceMs = performance.now()
  }
}

/**
 * The bytes of the first part named `file` of multipart/form-data. The parser is fed one piece at a time, and what it
 * made of the piece is handed on before the next one is read, so that memory stays constant.
 */
async function* readFilePart(body: AsyncIterable<Buffer>, contentType: string): AsyncGenerator<Buffer> {
  const parser = createParser(contentType)
  const pieces: Buffer[] = []
  let part: BusboyFileStream | undefined
  parser.on('file', (_name: string, stream: BusboyFileStream) => {
    // A part that is cut is told by the parser too; without a listener here the process would end.
    stream.on('error', () => undefined)
    if (part === undefined) stream.on('data', (piece: Buffer) => pieces.push(piece))
    else stream.resume()
    part ??= stream
  })
  const run = createStepper(parser)
  for await (const piece of body) {
    await run((done) => parser.write(piece, done))
    yield* pieces.splice(0)
  }
  await run((done) => parser.once('finish', done).end())
  if (part === undefined) throw new AppError('invalid_request', 'file: the form has no part with this name')
  yield* pieces
}

function createParser(contentType: string) {
  try {
    return new Busboy({
      headers: { 'content-type': contentType },
      // Whatever its content type and with or without a file name; other parts are read past.
      isPartAFile: (name) => name === 'file',
      limits: { fieldSize: 0 },
    })
  } catch {
    throw new AppError('invalid_request', 'Content-Type: has no boundary')
  }
}

/** Runs one step of the parser at a time. It fails by an event, in or between steps, and then may never call back. */
function createStepper(parser: ReturnType<typeof createParser>) {
  let isBroken = false
  let reject: (() => void) | undefined
  parser.on('error', () => {
    isBroken = true
    reject?.()
  })
  return async (step: (done: () => void) => void): Promise<void> => {
    await new Promise<void>((resolve, refuse) => {
      reject = () => refuse(new AppError('invalid_request', 'body: is not complete multipart/form-data'))
      if (isBroken) reject()
      else step(resolve)
    })
  }
}

/** Passes over `skipBytes`, then takes `maxBytes`. A source that has more is refused when they have been taken. */
export async function* takeBytes(
  source: AsyncIterable<Buffer>,
  { skipBytes = 0, maxBytes }: { skipBytes?: number; maxBytes: number },
): AsyncGenerator<Buffer> {
  let leftToSkip = skipBytes
  let leftToTake = maxBytes
  for await (const chunk of source) {
    const rest = chunk.subarray(leftToSkip)
    leftToSkip -= chunk.length - rest.length
    const taken = rest.subarray(0, leftToTake)
    leftToTake -= taken.length
    if (taken.length > 0) yield taken
    if (taken.length < rest.length) throw new AppError('payload_too_large')
  }
}

/** SHA-256 in lower-case hex. */
export async function hashBytes(source: AsyncIterable<Buffer>): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of source) hash.update(chunk)
  return hash.digest('hex')
}
