import { UnanalyzableError } from '../app-facts.ts'
import { type ByteReader, createByteReader } from '../byte-reader.ts'
import { limits } from '../limits.ts'

const trailerBytes = 32
/** Bytes that a number may take: what CoreFoundation writes. */
const numberBytes = [1, 2, 4, 8]
/** Text that is referred to again counts again, as often as a parser would make it. */
const maxTextBytes = 4 * limits.plistBytes

type Objects = { reader: ByteReader; referenceBytes: number; findPlace: (object: number) => number }

type Container = { place: number; count: number; isDictionary: boolean }

/**
 * Throws unless a parser that follows every reference stays within the limits: objects may refer to each other in circles, and
 * a kilobyte of them may stand for more than any memory holds.
 */
export function checkBinaryPlist(bytes: Buffer): void {
  const reader = createByteReader(bytes, 'big')
  const trailer = reader.sizeBytes - trailerBytes
  const [offsetBytes, referenceBytes] = [reader.uint8(trailer + 6), reader.uint8(trailer + 7)]
  const [count, top, table] = [reader.uint64(trailer + 8), reader.uint64(trailer + 16), reader.uint64(trailer + 24)]
  if (!numberBytes.includes(offsetBytes) || !numberBytes.includes(referenceBytes)) refuse()
  if (count > limits.plistObjects) exceed()
  if (table + count * offsetBytes > trailer) refuse()
  const findPlace = (object: number): number => {
    if (object >= count) refuse()
    const place = readNumber(reader, table + object * offsetBytes, offsetBytes)
    return place < table ? place : refuse()
  }
  checkGraph({ reader, referenceBytes, findPlace }, top)
}

/** The depth ends circles, and the budget of visits what branches out. */
function checkGraph(objects: Objects, top: number): void {
  const { reader, referenceBytes, findPlace } = objects
  const waiting = [{ object: top, depth: 1, isKey: false }]
  let visits = 1
  let textBytes = 0
  for (;;) {
    const next = waiting.pop()
    if (next === undefined) return
    const { object, depth, isKey } = next
    if (depth > limits.depth) exceed()
    const place = findPlace(object)
    const found = checkObject(reader, place)
    if (isKey && !isText(reader, place)) refuse()
    if (typeof found === 'number') {
      textBytes += found
      if (textBytes > maxTextBytes) exceed()
      continue
    }
    const references = found.isDictionary ? found.count * 2 : found.count
    visits += references
    if (visits > limits.plistVisits) exceed()
    reader.slice(found.place, references * referenceBytes)
    for (let index = 0; index < references; index += 1) {
      const reference = readNumber(reader, found.place + index * referenceBytes, referenceBytes)
      waiting.push({ object: reference, depth: depth + 1, isKey: found.isDictionary && index < found.count })
    }
  }
}

const types = { integer: 1, real: 2, date: 3, data: 4, ascii: 5, utf16: 6, identifier: 8, array: 10, dictionary: 13 }

/** A container, or the bytes that the text of anything else takes. */
function checkObject(reader: ByteReader, place: number): Container | number {
  const marker = reader.uint8(place)
  const type = marker >> 4
  const short = marker & 15
  if (type === 0) return 0
  if (type === types.integer || type === types.real) return checkBytes(reader, place + 1, 2 ** short)
  if (type === types.date) return checkBytes(reader, place + 1, 8)
  if (type === types.identifier) return checkBytes(reader, place + 1, short + 1)
  const { count, start } = readCount(reader, place + 1, short)
  if (type === types.array || type === types.dictionary) {
    return { place: start, count, isDictionary: type === types.dictionary }
  }
  if (type === types.data) return checkBytes(reader, start, count)
  if (type === types.ascii) return checkBytes(reader, start, count) + count
  if (type === types.utf16) return checkBytes(reader, start, count * 2) + count * 2
  return refuse()
}

/** Sizes of 15 and more follow as a number of their own. */
function readCount(reader: ByteReader, place: number, short: number): { count: number; start: number } {
  if (short < 15) return { count: short, start: place }
  const bytes = 2 ** (reader.uint8(place) & 15)
  return { count: readNumber(reader, place + 1, bytes), start: place + 1 + bytes }
}

function isText(reader: ByteReader, place: number): boolean {
  const type = reader.uint8(place) >> 4
  return type === types.ascii || type === types.utf16
}

function checkBytes(reader: ByteReader, place: number, length: number): 0 {
  reader.slice(place, length)
  return 0
}

function readNumber(reader: ByteReader, place: number, bytes: number): number {
  if (bytes === 1) return reader.uint8(place)
  if (bytes === 2) return reader.uint16(place)
  if (bytes === 4) return reader.uint32(place)
  return bytes === 8 ? reader.uint64(place) : refuse()
}

function refuse(): never {
  throw new UnanalyzableError('malformed_content', 'the binary property list is broken')
}

function exceed(): never {
  throw new UnanalyzableError('limit_exceeded', 'the binary property list has too many objects')
}
