import type { Archive, ArchiveEntry } from '../archive.ts'
import type { ByteReader } from '../byte-reader.ts'
import { type PeLayout, readPeLayout } from '../executables/read-pe.ts'
import { encodeLargest, type IconCandidate } from '../icons/encode-largest.ts'
import { pngHeaderBytes, readPngHeader } from '../icons/read-png-header.ts'
import { limits } from '../limits.ts'
import { loadOptional, readOptional } from '../optional.ts'

const iconType = 3
const folderFlag = 0x80000000
const maxSections = 96
/** Of a folder: kinds of resources, icons of an app, or languages of an icon. */
const maxRows = 64

/**
 * The largest PNG among the icons of a program for Windows; undefined when it has none, as when all of them are bitmaps. One
 * of Flutter is 0.1 MB; larger ones are not read for their icon.
 */
export async function readPeIcon(archive: Archive, entry: ArchiveEntry): Promise<Buffer | undefined> {
  if (entry.sizeBytes > limits.iconBytes) return undefined
  return await loadOptional(async () => encodeLargest(findIcons(await archive.read(entry, limits.iconBytes))))
}

type Resources = { reader: ByteReader; start: number; toPlace: (address: number) => number }

function findIcons(bytes: Buffer): IconCandidate[] {
  const layout = readPeLayout(bytes)
  const resources = layout && findResources(layout)
  if (resources === undefined) return []
  const { reader, start, toPlace } = resources
  const kinds = readFolder(resources, 0).filter(({ name }) => name === iconType)
  const icons = kinds.flatMap(({ place }) => readFolder(resources, place)).slice(0, limits.iconCandidates)
  return icons.flatMap(({ place }) => {
    const [language] = readFolder(resources, place)
    if (language === undefined || language.isFolder) return []
    const data = start + language.place
    const image = readOptional(() => reader.slice(toPlace(reader.uint32(data)), reader.uint32(data + 4)))
    const header = image && readPngHeader(image.subarray(0, pngHeaderBytes))
    return image && header ? [{ header, load: async () => image }] : []
  })
}

/** The third of the directories that the optional header ends with; in the file it lies where its section does. */
function findResources({ reader, fileHeader, optionalHeader, is64 }: PeLayout): Resources | undefined {
  const directories = optionalHeader + (is64 ? 112 : 96)
  if (reader.uint32(directories - 4) < 3) return undefined
  const address = reader.uint32(directories + 16)
  if (address === 0) return undefined
  const sections = optionalHeader + reader.uint16(fileHeader + 16)
  const count = Math.min(reader.uint16(fileHeader + 2), maxSections)
  for (let index = 0; index < count; index += 1) {
    const row = sections + index * 40
    const [sectionAddress, length, place] = [reader.uint32(row + 12), reader.uint32(row + 16), reader.uint32(row + 20)]
    if (address < sectionAddress || address >= sectionAddress + length) continue
    const toPlace = (other: number) => other - sectionAddress + place
    return { reader, start: toPlace(address), toPlace }
  }
  return undefined
}

type Row = { name: number; place: number; isFolder: boolean }

/** Three levels deep at most, as the caller goes: kind, icon, language. Places count from the start of the resources. */
function readFolder({ reader, start }: Resources, place: number): Row[] {
  const folder = start + place
  const count = Math.min(reader.uint16(folder + 12) + reader.uint16(folder + 14), maxRows)
  return Array.from({ length: count }, (_, index) => {
    const row = folder + 16 + index * 8
    const target = reader.uint32(row + 4)
    return { name: reader.uint32(row), place: target % folderFlag, isFolder: target >= folderFlag }
  })
}
