import { type AttributeName, androidNamespace } from '../../../src/analyzer/android/xml.ts'

/** A field of a protobuf message: a number, a text, or messages within. */
export function writeField(number: number, value: number | string | Buffer[]): Buffer {
  if (typeof value === 'number') return Buffer.concat([writeVarint(number << 3), writeVarint(value)])
  const bytes = typeof value === 'string' ? Buffer.from(value) : Buffer.concat(value)
  return Buffer.concat([writeVarint((number << 3) | 2), writeVarint(bytes.length), bytes])
}

function writeVarint(value: number): Buffer {
  const bytes: number[] = []
  let rest = value >>> 0
  for (; rest >= 0x80; rest >>>= 7) bytes.push((rest & 0x7f) | 0x80)
  return Buffer.from([...bytes, rest])
}

type Attributes = Partial<Record<AttributeName, string | number | { argb: number }>>

/** The XML of an app bundle: what aapt2 would refuse can be written, too. */
export function writeElement(name: string, attributes: Attributes, children: Buffer[] = []): Buffer {
  const written = Object.entries(attributes).map(([key, value]) =>
    writeField(4, [writeField(1, androidNamespace), writeField(2, key), writeValue(value)]),
  )
  const nodes = children.map((child) => writeField(5, [child]))
  return writeField(1, [writeField(3, name), ...written, ...nodes])
}

function writeValue(value: string | number | { argb: number }): Buffer {
  if (typeof value === 'string') return writeField(3, value)
  if (typeof value === 'object') return writeField(6, [writeField(7, [writeField(8 + 1, value.argb)])])
  const float = Buffer.alloc(5)
  float.writeUInt8((3 << 3) | 5)
  float.writeFloatLE(value, 1)
  return writeField(6, [writeField(7, [float])])
}

/** A manifest with the package `com.example.hostile`. */
export function writeManifest(children: Buffer[]): Buffer {
  const attribute = writeField(4, [writeField(2, 'package'), writeField(3, 'com.example.hostile')])
  const nodes = children.map((child) => writeField(5, [child]))
  return writeField(1, [writeField(3, 'manifest'), attribute, ...nodes])
}
