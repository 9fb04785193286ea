import { hash } from 'node:crypto'

/** A client_id as 128 bits, in four words of 32. */
export type ClientKey = Uint32Array

const uuidLength = 36
const dash = 45

/** The value of each hexadecimal digit as updaters write it; 255 for everything else. */
const digits = new Uint8Array(128).fill(255)
for (const [value, digit] of [...'0123456789abcdef'].entries()) digits[digit.charCodeAt(0)] = value

/**
 * Writes the key of a client_id into `words` from `offset` on. A UUID in its usual form is its own key; any other text has
 * a UUID of version 8 made of its SHA-256 (RFC 9562, section 5.8). 80 ns for a UUID.
 */
export function writeClientKey(clientId: string, words: Uint32Array, offset: number): void {
  if (clientId.length !== uuidLength || !writeUuid(clientId, words, offset)) writeHash(clientId, words, offset)
}

function writeUuid(text: string, words: Uint32Array, offset: number): boolean {
  let bad = 0
  let word = 0
  let count = 0
  for (let index = 0; index < uuidLength; index += 1) {
    const code = text.charCodeAt(index)
    if (index === 8 || index === 13 || index === 18 || index === 23) {
      if (code !== dash) return false
      continue
    }
    const digit = code < 128 ? (digits[code] ?? 255) : 255
    bad |= digit
    word = (word << 4) | digit
    count += 1
    if ((count & 7) === 0) {
      words[offset + (count >>> 3) - 1] = word
      word = 0
    }
  }
  return (bad & 0xf0) === 0
}

function writeHash(text: string, words: Uint32Array, offset: number): void {
  const bytes = hash('sha256', text, 'buffer')
  for (let word = 0; word < 4; word += 1) words[offset + word] = bytes.readUInt32BE(word * 4)
  words[offset + 1] = ((words[offset + 1] ?? 0) & 0xffff0fff) | 0x8000
  words[offset + 2] = ((words[offset + 2] ?? 0) & 0x3fffffff) | 0x80000000
}

export function readClientKey(clientId: string): ClientKey {
  const words = new Uint32Array(4)
  writeClientKey(clientId, words, 0)
  return words
}

const hexOfByte = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))

/** The key as PostgreSQL writes it. */
export function formatClientKey(words: Uint32Array, offset: number): string {
  let text = ''
  for (let index = 0; index < 4; index += 1) {
    const word = words[offset + index] ?? 0
    if (index === 1 || index === 2) text += '-'
    text += `${hexOfByte[word >>> 24]}${hexOfByte[(word >>> 16) & 255]}`
    if (index === 1 || index === 2) text += '-'
    text += `${hexOfByte[(word >>> 8) & 255]}${hexOfByte[word & 255]}`
  }
  return text
}
