import { randomBytes } from 'node:crypto'
import { hash, type Options, verify } from '@node-rs/argon2'
import { preparePassword } from './rules.ts'

/** Argon2id, the library's default, with what OWASP's Password Storage Cheat Sheet asks at least. About 25 ms and 19 MiB each. */
const options = { memoryCost: 19_456, timeCost: 2, parallelism: 1, outputLen: 32 } satisfies Options

/** A hash of no password, with the same parameters: to compare with it takes as long as with a real one. */
const noPassword = `$argon2id$v=19$m=${options.memoryCost},t=${options.timeCost},p=${options.parallelism}$${encode(16)}$${encode(options.outputLen)}`

export async function hashPassword(password: string): Promise<string> {
  return await hash(preparePassword(password), options)
}

/** `passwordHash` null: no such account, or one without a password. Takes as long as a wrong password, and is false. */
export async function verifyPassword(passwordHash: string | null, password: string): Promise<boolean> {
  const isSame = await verify(passwordHash ?? noPassword, preparePassword(password))
  return isSame && passwordHash !== null
}

function encode(sizeBytes: number): string {
  return randomBytes(sizeBytes).toString('base64').replaceAll('=', '')
}
