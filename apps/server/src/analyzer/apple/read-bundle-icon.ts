import type { Archive, ArchiveEntry } from '../archive.ts'
import { encodeLargest, type IconCandidate, maxIconAttempts } from '../icons/encode-largest.ts'
import { pngHeaderBytes, readPngHeader } from '../icons/read-png-header.ts'
import { limits } from '../limits.ts'
import { loadOptional } from '../optional.ts'
import { findDictionary, findText, findTexts, type Plist } from './read-plist.ts'

/** The scale and the device that may follow the name which the property list has for an icon. */
const variant = /^(@\d+x)?(~[a-z]+)?$/
/** What Xcode calls icons when the property list is silent. */
const usualNames = ['AppIcon', 'Icon']

/**
 * The icon of an iOS app, of the files that lie beside its property list: the largest of those which that names, else of those
 * with a usual name. undefined when there are none, as in an app that has all its images in an Assets.car.
 */
export async function readBundleIcon(archive: Archive, folder: string, plist: Plist): Promise<Buffer | undefined> {
  const images = findImages(archive, folder)
  const declared = findIconNames(plist)
  const groups = [
    images.filter(({ name }) => declared.some((base) => isVariant(name, base))),
    ...usualNames.map((base) => images.filter(({ name }) => name.startsWith(base))),
  ]
  let attempts = maxIconAttempts
  for (const group of groups) {
    const candidates = await findCandidates(archive, group)
    const icon = await encodeLargest(candidates, attempts)
    if (icon !== undefined) return icon
    attempts = Math.max(0, attempts - candidates.length)
  }
  return undefined
}

type Image = { name: string; entry: ArchiveEntry }

/** PNGs of the folder itself, without their extension. */
function findImages(archive: Archive, folder: string): Image[] {
  const images: Image[] = []
  for (const [path, entry] of archive.entries) {
    if (!path.startsWith(folder) || !/\.png$/i.test(path)) continue
    const name = path.slice(folder.length, -'.png'.length)
    if (!name.includes('/')) images.push({ name, entry })
  }
  return images
}

/** A file may have hundreds of thousands of names for icons, and the archive as many files. */
function findIconNames(plist: Plist): string[] {
  const names = ['CFBundleIcons', 'CFBundleIcons~ipad'].flatMap((key) => {
    const primary = findDictionary(findDictionary(plist, key) ?? {}, 'CFBundlePrimaryIcon')
    return primary === undefined ? [] : findTexts(primary, 'CFBundleIconFiles')
  })
  const single = findText(plist, 'CFBundleIconFile')
  names.push(...findTexts(plist, 'CFBundleIconFiles').slice(0, limits.iconCandidates), ...(single ? [single] : []))
  const bases = names.map((name) => name.replace(/\.png$/i, '')).filter((name) => name !== '')
  return [...new Set(bases)].slice(0, limits.iconCandidates)
}

function isVariant(name: string, base: string): boolean {
  return name.startsWith(base) && variant.test(name.slice(base.length))
}

async function findCandidates(archive: Archive, images: Image[]): Promise<IconCandidate[]> {
  const candidates: IconCandidate[] = []
  for (const { entry } of images.slice(0, limits.iconCandidates)) {
    const load = () => loadOptional(() => archive.read(entry, limits.iconBytes))
    const start = await loadOptional(() => archive.readStart(entry, pngHeaderBytes))
    const header = start && readPngHeader(start)
    if (header !== undefined) candidates.push({ header, load })
  }
  return candidates
}
