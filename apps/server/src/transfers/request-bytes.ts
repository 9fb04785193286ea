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

/** The bytes that a request carries: its part `file`, or the body as it is. */
export function readRequestBytes(raw: IncomingMessage): RequestBytes {
  const contentType = raw.headers['content-type'] ?? ''
  if (isMultipart(contentType)) return { source: readFilePart(raw, contentType), contentLength: undefined }
  const contentLength = raw.headers['content-length']
  return { source: readBody(raw), contentLength: contentLength === undefined ? undefined : Number(contentLength) }
}

/** Leaves the request readable when its reader stops early, so that the rest can be drained. */
function readBody(raw: IncomingMessage): AsyncIterable<Buffer> {
  return { [Symbol.asyncIterator]: () => raw.iterator({ destroyOnReturn: false }) as AsyncIterator<Buffer> }
}

/**
 * The bytes of the first part named `file` of multipart/form-data. The parser is fed one piece at a time, and what it
 * made of the piece is handed on before the next one is read, so that memory stays constant.
 */
async function* readFilePart(raw: IncomingMessage, contentType: string): AsyncGenerator<Buffer> {
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
  for await (const piece of readBody(raw)) {
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
