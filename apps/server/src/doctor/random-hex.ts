import { randomBytes } from 'node:crypto'

/** A name that nothing else has: also the key of a blob. */
export function randomHex(): string {
  return randomBytes(16).toString('hex')
}
