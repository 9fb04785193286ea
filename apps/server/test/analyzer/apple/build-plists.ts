import { build, buildBinary, type PlistValue } from 'plist'

export type Fields = Record<string, PlistValue>

export const iosFields: Fields = {
  CFBundleDisplayName: 'Atlas Notes',
  CFBundleName: 'Runner',
  CFBundleIdentifier: 'com.example.atlas',
  CFBundleExecutable: 'Runner',
  MinimumOSVersion: '13.0',
  DTPlatformVersion: '17.4',
  DTSDKName: 'iphoneos17.2',
}

export const macosFields: Fields = {
  CFBundleName: 'Atlas',
  CFBundleIdentifier: 'com.example.atlas.mac',
  CFBundleExecutable: 'Atlas',
  CFBundleIconFile: 'AppIcon',
  LSMinimumSystemVersion: '10.14',
  DTSDKName: 'macosx14.2',
}

export function buildXmlPlist(fields: Fields): Buffer {
  return Buffer.from(build(fields))
}

export function buildBinaryPlist(fields: Fields): Buffer {
  return Buffer.from(buildBinary(fields))
}

/** All fields but some. */
export function omit(fields: Fields, ...keys: string[]): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([key]) => !keys.includes(key)))
}

/** A binary property list of objects as they are, which may refer to each other in every way. References take two bytes. */
export function buildObjects(objects: Buffer[], { count = BigInt(objects.length), top = 0n } = {}): Buffer {
  const places: number[] = []
  let place = 8
  for (const object of objects) {
    places.push(place)
    place += object.length
  }
  const table = Buffer.alloc(places.length * 4)
  for (const [index, value] of places.entries()) table.writeUInt32BE(value, index * 4)
  const trailer = Buffer.alloc(32)
  trailer.writeUInt8(4, 6)
  trailer.writeUInt8(2, 7)
  trailer.writeBigUInt64BE(count, 8)
  trailer.writeBigUInt64BE(top, 16)
  trailer.writeBigUInt64BE(BigInt(place), 24)
  return Buffer.concat([Buffer.from('bplist00'), ...objects, table, trailer])
}

const array = 0xa0
const dictionary = 0xd0

export function buildArray(references: number[]): Buffer {
  return buildContainer(array, references.length, references)
}

export function buildDictionary(keys: number[], values: number[]): Buffer {
  return buildContainer(dictionary, keys.length, [...keys, ...values])
}

export function buildText(text: string): Buffer {
  return Buffer.concat([buildMarker(0x50, text.length), Buffer.from(text, 'latin1')])
}

function buildContainer(type: number, count: number, references: number[]): Buffer {
  const bytes = Buffer.alloc(references.length * 2)
  for (const [index, reference] of references.entries()) bytes.writeUInt16BE(reference, index * 2)
  return Buffer.concat([buildMarker(type, count), bytes])
}

export function buildMarker(type: number, count: number): Buffer {
  if (count < 15) return Buffer.from([type | count])
  const bytes = Buffer.from([type | 15, 0x12, 0, 0, 0, 0])
  bytes.writeUInt32BE(count, 2)
  return bytes
}
