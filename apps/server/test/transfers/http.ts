import { type Agent, type ClientRequest, type IncomingHttpHeaders, request as startRequest } from 'node:http'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'

export type Answer = { status: number; headers: IncomingHttpHeaders; body: Buffer; code: string | undefined }

type RequestOptions = { headers?: Record<string, string | number>; body?: Buffer | AsyncIterable<Buffer> }

/** One request on a connection of its own. A body that is an iterable is sent without Content-Length. */
export async function send(method: string, url: string, options: RequestOptions = {}): Promise<Answer> {
  const { body } = options
  const headers: Record<string, string | number> = { ...options.headers }
  if (Buffer.isBuffer(body)) headers['content-length'] = body.length
  const { request, answer } = open(method, url, headers)
  if (body === undefined || Buffer.isBuffer(body)) request.end(body)
  else Readable.from(body).pipe(request)
  return await answer
}

/** A request whose body the test sends by hand. */
export function open(
  method: string,
  url: string,
  headers: Record<string, string | number>,
  agent: Agent | false = false,
): { request: ClientRequest; answer: Promise<Answer> } {
  const request = startRequest(url, { method, headers, agent })
  const answer = new Promise<Answer>((resolve, reject) => {
    request.on('error', reject)
    request.on('response', async (response) => {
      const body = await buffer(response).catch(() => Buffer.alloc(0))
      resolve({ status: response.statusCode ?? 0, headers: response.headers, body, code: readCode(body) })
    })
  })
  answer.catch(() => undefined)
  return { request, answer }
}

function readCode(body: Buffer): string | undefined {
  try {
    return JSON.parse(body.toString()).code
  } catch {
    return undefined
  }
}

export function toForm(parts: { name: string; filename?: string; bytes: Buffer }[]): {
  headers: Record<string, string>
  body: Buffer
} {
  const boundary = 'dart-http-boundary-abc'
  const pieces = parts.flatMap(({ name, filename, bytes }) => [
    `--${boundary}\r\ncontent-disposition: form-data; name="${name}"`,
    filename === undefined ? '' : `; filename="${filename}"\r\ncontent-type: application/octet-stream`,
    '\r\n\r\n',
    bytes,
    '\r\n',
  ])
  return {
    headers: { 'content-type': `multipart/form-data; boundary=${boundary}` },
    body: Buffer.concat([...pieces, `--${boundary}--\r\n`].map((piece) => Buffer.from(piece))),
  }
}

/** Sends a chunk as the command line client does. */
export async function putChunk(url: string, bytes: Buffer, from: number, to: number): Promise<Answer> {
  const headers = { 'content-range': `bytes ${from}-${to}/${bytes.length}` }
  return await send('PUT', url, { headers, body: bytes.subarray(from, to + 1) })
}

export async function askProgress(url: string, total: number): Promise<Answer> {
  return await send('PUT', url, { headers: { 'content-range': `bytes */${total}` } })
}
