import { type CheckedBytes, checkBytes, malformed } from './checked-bytes.ts'
import { type Chunk, chunkTypes, readChunk, readChunks } from './chunks.ts'
import { checkAttributeCount, createElementBuilder } from './element-builder.ts'
import { emptyPool, readStringPool, type StringPool } from './string-pool.ts'
import { decodeValue } from './values.ts'
import type { XmlAttribute, XmlElement } from './xml.ts'

const attributeBytes = 20

/** The XML that an APK has: strings in a pool, names of attributes as ids, values with types. */
export function readBinaryXml(file: Buffer): XmlElement {
  const bytes = checkBytes(file)
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

function readElement(bytes: CheckedBytes, chunk: Chunk, names: Names): XmlElement {
  const body = chunk.headerEnd
  const size = bytes.u16(body + 10)
  const count = bytes.u16(body + 12)
  checkAttributeCount(count)
  const start = body + bytes.u16(body + 8)
  if (count > 0 && (size < attributeBytes || start + count * size > chunk.end)) {
    throw malformed('the attributes of an XML element are not in it')
  }
  const attributes = Array.from({ length: count }, (_, index) => readAttribute(bytes, start + index * size, names))
  return { name: names.pool(bytes.u32(body + 4)) ?? '', attributes, children: [] }
}

function readAttribute(bytes: CheckedBytes, at: number, { pool, resourceMap }: Names): XmlAttribute {
  const nameIndex = bytes.u32(at + 4)
  const value = decodeValue(bytes.u8(at + 15), bytes.u32(at + 16), () => pool(bytes.u32(at + 16)))
  return {
    resourceId: findResourceId(bytes, resourceMap, nameIndex),
    namespace: pool(bytes.u32(at)) ?? '',
    name: pool(nameIndex) ?? '',
    value,
  }
}

function findResourceId(bytes: CheckedBytes, resourceMap: Chunk | undefined, nameIndex: number): number {
  if (resourceMap === undefined) return 0
  const at = resourceMap.headerEnd + nameIndex * 4
  return at + 4 <= resourceMap.end ? bytes.u32(at) : 0
}
