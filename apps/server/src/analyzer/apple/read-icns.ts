import type { Archive } from '../archive.ts'
import { createByteReader } from '../byte-reader.ts'
import { encodeLargest, type IconCandidate } from '../icons/encode-largest.ts'
import { pngHeaderBytes, readPngHeader } from '../icons/read-png-header.ts'
import { limits } from '../limits.ts'
import { loadOptional, readOptional } from '../optional.ts'
import { findText, type Plist } from './read-plist.ts'

/** The icon of a macOS app, out of the file which its property list names. undefined when that has no PNG in it. */
export async function readIcns(archive: Archive, folder: string, plist: Plist): Promise<Buffer | undefined> {
  const names = ['CFBundleIconFile', 'CFBundleIconName'].map((key) => findText(plist, key))
  const paths = names.flatMap((name) => (name === undefined ? [] : [name, `${name}.icns`]))
  for (const path of paths) {
    const entry = archive.entries.get(`${folder}Resources/${path}`)
    const bytes = entry && (await loadOptional(() => archive.read(entry, limits.iconBytes)))
    const icon = bytes && (await encodeLargest(findImages(bytes)))
    if (icon !== undefined) return icon
  }
  return undefined
}

/** There are 30 types of blocks. */
const maxBlocks = 64

/** Blocks of a type, a length that includes both, and bytes. Many types may have a PNG; it shows by its first bytes. */
function findImages(bytes: Buffer): IconCandidate[] {
  const images: IconCandidate[] = []
  readOptional(() => {
    const reader = createByteReader(bytes, 'big')
    if (reader.slice(0, 4).toString('latin1') !== 'icns') return
    for (let place = 8, count = 0; place < bytes.length && count < maxBlocks; count += 1) {
      const length = reader.uint32(place + 4)
      if (length < 8) return
      const image = reader.slice(place + 8, length - 8)
      const header = readPngHeader(image.subarray(0, pngHeaderBytes))
      if (header !== undefined) images.push({ header, load: async () => image })
      place += length
    }
  })
  return images
}
