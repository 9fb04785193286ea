import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { basename } from 'node:path'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'

/** A backup holds hashes of passwords and the secrets that sign: it is nobody's but its owner's. */
export const privateFolderMode = 0o700
const privateFileMode = 0o600

export type WrittenFile = { name: string; size_bytes: number; sha256: string }

/** Durable once this resolves. */
export async function writeNewFile(
  path: string,
  source: Readable,
  options: { replace?: boolean } = {},
): Promise<WrittenFile> {
  const hash = createHash('sha256')
  let sizeBytes = 0
  const measure = async function* (chunks: AsyncIterable<Buffer>) {
    for await (const chunk of chunks) {
      hash.update(chunk)
      sizeBytes += chunk.length
      yield chunk
    }
  }
  const flags = options.replace === true ? 'w' : 'wx'
  await pipeline(source, measure, createWriteStream(path, { flags, mode: privateFileMode, flush: true }))
  return { name: basename(path), size_bytes: sizeBytes, sha256: hash.digest('hex') }
}

/** What is wrong with the file, or undefined. */
export async function findFileProblem(path: string, expected: WrittenFile): Promise<string | undefined> {
  const hash = createHash('sha256')
  let sizeBytes = 0
  try {
    for await (const chunk of createReadStream(path, { highWaterMark: 1024 ** 2 })) {
      hash.update(chunk)
      sizeBytes += chunk.length
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return `${path} is missing`
    return `${path} cannot be read: ${(error as Error).message}`
  }
  if (sizeBytes !== expected.size_bytes) return `${path} has ${sizeBytes} bytes instead of ${expected.size_bytes}`
  return hash.digest('hex') === expected.sha256 ? undefined : `${path} is damaged: it has another SHA-256`
}
