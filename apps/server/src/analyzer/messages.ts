import type { AnalysisProblem, AnalyzedApp } from './app-facts.ts'
import { maxReadBytes } from './block-cache.ts'

/**
 * What the process that analyzes says. It asks for bytes, again only when those that it asked for have come, and ends
 * with its answer. What it hears are those bytes and nothing else.
 */
export type Message = { kind: 'read'; offset: number; length: number } | { kind: 'answer'; text: string; icon: Buffer }

/** What the text of an answer is, as JSON. The icon travels beside it. */
export type Answer =
  | { kind: 'analyzed'; facts: Omit<AnalyzedApp, 'icon'> }
  | { kind: 'unanalyzable'; problem: AnalysisProblem; detail: string }
  | { kind: 'failed'; reason: string }

export const maxRequestBytes = maxReadBytes
/** An icon of more is left out (bytes). */
export const maxIconBytes = 4 * 1024 ** 2
/** An icon and what is said beside it (bytes). */
export const maxMessageBytes = maxIconBytes + 256 * 1024

const codes = { read: 1, answer: 2 }
const readMessageBytes = 13
const answerHeaderBytes = 5

export function encodeRead(offset: number, length: number): Buffer {
  const bytes = Buffer.alloc(readMessageBytes)
  bytes.writeUInt8(codes.read)
  bytes.writeDoubleLE(offset, 1)
  bytes.writeUInt32LE(length, 9)
  return bytes
}

export function encodeAnswer(answer: Answer, icon: Buffer | undefined): Buffer {
  const text = Buffer.from(JSON.stringify(answer))
  const header = Buffer.alloc(answerHeaderBytes)
  header.writeUInt8(codes.answer)
  header.writeUInt32LE(text.length, 1)
  return Buffer.concat([header, text, icon ?? Buffer.alloc(0)])
}

/** undefined: no message. Whether one makes sense is for its reader to check. */
export function decodeMessage(bytes: Buffer): Message | undefined {
  if (bytes[0] === codes.read && bytes.length === readMessageBytes) {
    return { kind: 'read', offset: bytes.readDoubleLE(1), length: bytes.readUInt32LE(9) }
  }
  if (bytes[0] !== codes.answer || bytes.length < answerHeaderBytes) return undefined
  const iconAt = answerHeaderBytes + bytes.readUInt32LE(1)
  if (iconAt > bytes.length) return undefined
  return { kind: 'answer', text: bytes.toString('utf8', answerHeaderBytes, iconAt), icon: bytes.subarray(iconAt) }
}
