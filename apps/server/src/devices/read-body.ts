import type { IncomingMessage } from 'node:http'
import { AppError } from '../errors.ts'

/** The whole body, or AppError when it is too large, too slow, or its sender went away. */
export function readBody(request: IncomingMessage, limits: { maxBytes: number; timeoutMs: number }): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let sizeBytes = 0
    const timer = setTimeout(() => reject(new AppError('request_timeout')), limits.timeoutMs)
    request.on('data', (chunk: Buffer) => {
      sizeBytes += chunk.length
      if (sizeBytes <= limits.maxBytes) {
        chunks.push(chunk)
        return
      }
      // The rest is read and dropped: to close at once would reset the connection before the answer is read.
      chunks.length = 0
      reject(new AppError('payload_too_large'))
    })
    request.on('end', () => resolve(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks)))
    // Follows 'end', and also a connection that is lost before it.
    request.on('close', () => {
      clearTimeout(timer)
      if (!request.complete) reject(new AppError('invalid_request', 'body: is not complete'))
    })
  })
}
