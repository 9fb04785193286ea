import { type AppFacts, UnanalyzableError } from '../app-facts.ts'
import type { Archive } from '../archive.ts'
import { limits } from '../limits.ts'
import { readBinaryTable } from './binary-table.ts'
import { readBinaryXml } from './binary-xml.ts'
import { findIcon } from './find-icon.ts'
import { readManifest } from './manifest.ts'
import { readProtoTable } from './proto-table.ts'
import { readProtoXml } from './proto-xml.ts'
import { rememberLookups } from './resolve.ts'
import { readTextXml } from './text-xml.ts'
import type { ResourceTable } from './values.ts'
import type { XmlElement } from './xml.ts'

type Layout = {
  manifest: string
  readXml: (file: Buffer) => XmlElement
  /** Has the architecture as its first group. */
  library: RegExp
  /** undefined: the format has none, and no icon. */
  resources?: { table: string; readTable: (file: Buffer) => ResourceTable; folder: string }
}

const layouts: Record<'aab' | 'apk' | 'aar', Layout> = {
  aab: {
    manifest: 'base/manifest/AndroidManifest.xml',
    readXml: readProtoXml,
    // Of every module: a feature may bring the code of an architecture.
    library: /^[^/]+\/lib\/([^/]+)\/[^/]+\.so$/,
    resources: { table: 'base/resources.pb', readTable: readProtoTable, folder: 'base/' },
  },
  apk: {
    manifest: 'AndroidManifest.xml',
    readXml: readBinaryXml,
    library: /^lib\/([^/]+)\/[^/]+\.so$/,
    resources: { table: 'resources.arsc', readTable: readBinaryTable, folder: '' },
  },
  aar: { manifest: 'AndroidManifest.xml', readXml: readTextXml, library: /^jni\/([^/]+)\/[^/]+\.so$/ },
}

/** A library (AAR) is named by its package, and has no icon. */
export async function readAndroidApp(archive: Archive, format: 'aab' | 'apk' | 'aar'): Promise<AppFacts> {
  const layout = layouts[format]
  const entry = archive.entries.get(layout.manifest)
  if (entry === undefined) throw new UnanalyzableError('unknown_format', `has no ${layout.manifest}`)
  const manifest = layout.readXml(await archive.read(entry, limits.manifestBytes))
  const table = await openTable(archive, layout)
  const { packageName, label, minSdkVersion, targetSdkVersion, icons } = readManifest(manifest, table)
  const icon =
    layout.resources === undefined
      ? undefined
      : await findIcon({ archive, table, folder: layout.resources.folder, readXml: layout.readXml }, icons)
  return {
    displayName: (layout.resources && label) ?? packageName,
    packageName,
    minSdkVersion,
    targetSdkVersion,
    architectures: findArchitectures(archive, layout.library),
    ...(icon === undefined ? {} : { icon }),
  }
}

const noResources: ResourceTable = () => []

/** A table that cannot be read costs the label and the icon, not what the manifest says itself. */
async function openTable(archive: Archive, { resources }: Layout): Promise<ResourceTable> {
  if (resources === undefined) return noResources
  const entry = archive.entries.get(resources.table)
  if (entry === undefined) return noResources
  try {
    return rememberLookups(resources.readTable(await archive.read(entry, limits.resourceTableBytes)))
  } catch (error) {
    if (error instanceof UnanalyzableError && error.problem !== 'damaged_archive') return noResources
    throw error
  }
}

const architecturePattern = /^[\w-]{1,32}$/
/** There are eight of Android, and some variants for tools. */
const maxArchitectures = 32

function findArchitectures(archive: Archive, library: RegExp): string[] {
  const found = new Set<string>()
  for (const name of archive.entries.keys()) {
    const architecture = library.exec(name)?.[1]
    if (architecture !== undefined && architecturePattern.test(architecture)) found.add(architecture)
    if (found.size === maxArchitectures) break
  }
  return [...found].sort()
}
