import { type ByteReader, createByteReader } from '../byte-reader.ts'
import { type Chunk, chunkTypes, readChunk, readChunks } from './chunks.ts'
import { checkAttributeCount, createElementBuilder } from './element-builder.ts'
import { malformed } from './refusals.ts'
import { emptyPool, readStringPool, type StringPool } from './string-pool.ts'
import { decodeValue } from './values.ts'
import type { XmlAttribute, XmlElement } from './xml.ts'

const attributeBytes = 20

/** The XML that an APK has: strings in a pool, names of attributes as ids, values with types. */
export function readBinaryXml(file: Buffer): XmlElement {
  const bytes = createByteReader(file, 'little')
  const document = readChunk(bytes, 0, file.length)
  if (document.type !== chunkTypes.xml) throw malformed('not binary XML')
  const builder = createElementBuilder()
  let pool: StringPool | undefined
  let resourceMap: Chunk | undefined
  for (const chunk of readChunks(bytes, document.headerEnd, document.end)) {
    if (chunk.type === chunkTypes.stringPool) pool ??= readStringPool(bytes, chunk)
    else if (chunk.type === chunkTypes.resourceMap) resourceMap = chunk
    else if (chunk.type === chunkTypes.endElement) builder.end()
    else if (chunk.type === chunkTypes.startElement) {
      builder.start(readElement(bytes, chunk, { pool: pool ?? emptyPool, resourceMap }))
    }
  }
  return builder.finish()
}

type Names = { pool: StringPool; resourceMap: Chunk | undefined }

function readElement(bytes: ByteReader, chunk: Chunk, names: Names): XmlElement {
  const body = chunk.headerEnd
  const size = bytes.uint16(body + 10)
  const count = bytes.uint16(body + 12)
  checkAttributeCount(count)
  const start = body + bytes.uint16(body + 8)
  if (count > 0 && (size < attributeBytes || start + count * size > chunk.end)) {
    throw malformed('the attributes of an XML element are not in it')
  }
  const attributes = Array.from({ length: count }, (_, index) => readAttribute(bytes, start + index * size, names))
  return { name: names.pool(bytes.uint32(body + 4)) ?? '', attributes, children: [] }
}

function readAttribute(bytes: ByteReader, at: number, { pool, resourceMap }: Names): XmlAttribute {
  const nameIndex = bytes.uint32(at + 4)
  const value = decodeValue(bytes.uint8(at + 15), bytes.uint32(at + 16), () => pool(bytes.uint32(at + 16)))
  return {
    resourceId: findResourceId(bytes, resourceMap, nameIndex),
    namespace: pool(bytes.uint32(at)) ?? '',
    name: pool(nameIndex) ?? '',
    value,
  }
}

function findResourceId(bytes: ByteReader, resourceMap: Chunk | undefined, nameIndex: number): number {
  if (resourceMap === undefined) return 0
  const at = resourceMap.headerEnd + nameIndex * 4
  return at + 4 <= resourceMap.end ? bytes.uint32(at) : 0
}
