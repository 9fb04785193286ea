import protobuf from 'protobufjs/minimal.js'
import { beyondLimit, malformed } from './refusals.ts'

/** A part of a file. Nothing of it is read before it is asked for. */
export type ProtoMessage = {
  file: Uint8Array
  start: number
  end: number
  /** Of the whole file: junk of two bytes a field would take long to skip. */
  budget: { fields: number }
}

/** The 32 lower bits of a number, or a text or a message within. */
export type ProtoField = { number: number; value: number | ProtoMessage }

/** And messages that are opened. A table with 65,536 strings takes 400,000. */
const maxFields = 1_500_000

const wireTypes = { varint: 0, fixed64: 1, bytes: 2, fixed32: 5 } as const

export function openMessage(file: Uint8Array): ProtoMessage {
  return { file, start: 0, end: file.length, budget: { fields: maxFields } }
}

/** The fields of a message, one by one. */
export function* readFields(message: ProtoMessage): Generator<ProtoField> {
  const { budget } = message
  budget.fields -= 1
  const reader = new protobuf.Reader(message.file)
  reader.pos = message.start
  reader.len = message.end
  while (reader.pos < reader.len) {
    budget.fields -= 1
    if (budget.fields < 0) throw beyondLimit('too many fields of messages')
    const field = readField(reader, budget)
    if (field !== undefined) yield field
  }
}

/** undefined for 64 bits, which nothing here asks for. */
function readField(reader: protobuf.Reader, budget: ProtoMessage['budget']): ProtoField | undefined {
  const tag = readVarint(reader)
  const number = tag >>> 3
  switch (tag & 7) {
    case wireTypes.varint:
      return { number, value: readVarint(reader) }
    case wireTypes.fixed64:
      skip(reader, 8)
      return undefined
    case wireTypes.bytes: {
      const start = skip(reader, readVarint(reader))
      return { number, value: { file: reader.buf, start, end: reader.pos, budget } }
    }
    case wireTypes.fixed32: {
      const start = skip(reader, 4)
      return { number, value: Buffer.from(reader.buf.subarray(start, start + 4)).readUInt32LE(0) }
    }
    default:
      throw malformed('a message has a field of an unknown type')
  }
}

/** The library reports with plain errors, which would count as our fault. */
function readVarint(reader: protobuf.Reader): number {
  try {
    return reader.uint32()
  } catch {
    throw malformed('a message has a number without an end')
  }
}

/** Returns where what is skipped begins. */
function skip(reader: protobuf.Reader, length: number): number {
  const start = reader.pos
  if (start + length > reader.len) throw malformed('a message is cut off')
  reader.pos = start + length
  return start
}

/** The first message at a path of field numbers. */
export function findMessage(message: ProtoMessage, ...path: number[]): ProtoMessage | undefined {
  let found: ProtoMessage | undefined = message
  for (const number of path) found = found === undefined ? undefined : findField(found, number, isMessage)
  return found
}

/** A number that is not there is 0. */
export function findNumber(message: ProtoMessage | undefined, number: number): number {
  return (message && findField(message, number, isNumber)) ?? 0
}

function findField<T extends ProtoField['value']>(
  message: ProtoMessage,
  number: number,
  isWanted: (value: ProtoField['value']) => value is T,
): T | undefined {
  for (const field of readFields(message)) {
    if (field.number === number && isWanted(field.value)) return field.value
  }
  return undefined
}

function isMessage(value: ProtoField['value']): value is ProtoMessage {
  return typeof value !== 'number'
}

function isNumber(value: ProtoField['value']): value is number {
  return typeof value === 'number'
}

export function decodeText(message: ProtoMessage | undefined): string {
  if (message === undefined) return ''
  const { file, start, end } = message
  return Buffer.from(file.buffer, file.byteOffset + start, end - start).toString('utf8')
}
