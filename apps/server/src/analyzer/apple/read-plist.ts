import { type PlistValue, parse, parseBinary } from 'plist'
import { UnanalyzableError } from '../app-facts.ts'
import type { Archive, ArchiveEntry } from '../archive.ts'
import { limits } from '../limits.ts'
import { checkBinaryPlist } from './check-binary-plist.ts'
import { cleanXmlPlist } from './clean-xml-plist.ts'

/** Ask it by the functions below: a file chooses its keys, and may choose `__proto__`. */
export type Plist = { readonly [key: string]: PlistValue }

export async function readPlistEntry(archive: Archive, entry: ArchiveEntry): Promise<Plist> {
  return readPlist(await archive.read(entry, limits.plistBytes))
}

/** A property list, binary or in XML. The outermost value of one that describes a bundle is always a dictionary. */
export function readPlist(bytes: Buffer): Plist {
  const isBinary = bytes.subarray(0, 8).equals(binaryMagic)
  if (isBinary) checkBinaryPlist(bytes)
  const value = isBinary ? tryParse(() => parseBinary(bytes)) : parseXml(bytes)
  return toDictionary(value) ?? refuse('the property list is no dictionary')
}

const binaryMagic = Buffer.from('bplist00')

/** What is no UTF-8 is no reason to fail, nor for the parser to write of it to the console. */
function parseXml(bytes: Buffer): PlistValue {
  const text = cleanXmlPlist(bytes.toString().replaceAll('\ufffd', '?'))
  return tryParse(() => parse(text))
}

function tryParse(read: () => PlistValue): PlistValue {
  try {
    return read()
  } catch {
    return refuse('the property list cannot be parsed')
  }
}

/** A text that is not blank. */
export function findText(plist: Plist, key: string): string | undefined {
  const value = findValue(plist, key)
  return typeof value === 'string' && value.trim() !== '' ? value.trim() : undefined
}

/** Those of a list that are texts; none when it is no list. */
export function findTexts(plist: Plist, key: string): string[] {
  return findList(plist, key).filter((value) => typeof value === 'string')
}

export function findDictionary(plist: Plist, key: string): Plist | undefined {
  return toDictionary(findValue(plist, key))
}

export function findDictionaries(plist: Plist, key: string): Plist[] {
  return findList(plist, key)
    .map(toDictionary)
    .filter((value) => value !== undefined)
}

function findList(plist: Plist, key: string): PlistValue[] {
  const value = findValue(plist, key)
  return Array.isArray(value) ? value : []
}

function findValue(plist: Plist, key: string): PlistValue | undefined {
  return Object.hasOwn(plist, key) ? plist[key] : undefined
}

function toDictionary(value: PlistValue | undefined): Plist | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
  return value instanceof Date || value instanceof Uint8Array ? undefined : value
}

function refuse(detail: string): never {
  throw new UnanalyzableError('malformed_content', detail)
}
