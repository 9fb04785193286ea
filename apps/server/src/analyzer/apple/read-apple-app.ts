import { type AppFacts, UnanalyzableError } from '../app-facts.ts'
import type { Archive } from '../archive.ts'
import { machHeaderBytes, readMachArchitectures } from '../executables/read-mach-o.ts'
import { findTargetVersion, getField, getNames } from './bundle-fields.ts'
import type { AppleApp } from './find-apple-app.ts'
import { readBundleIcon } from './read-bundle-icon.ts'
import { readIcns } from './read-icns.ts'
import { findText, type Plist, readPlistEntry } from './read-plist.ts'

/** Where the parts of a bundle are, with a `/` at the end, and what the field of its oldest system is called. */
type Layout = { folder: string; executables: string; oldestSystem: string }

export async function readAppleApp(archive: Archive, { root, kind }: AppleApp): Promise<AppFacts> {
  const { folder, executables, oldestSystem } = findLayout(root, kind)
  const entry = archive.entries.get(`${folder}Info.plist`)
  if (entry === undefined) throw new UnanalyzableError('unknown_format', 'there is no Info.plist')
  const plist = await readPlistEntry(archive, entry)
  const names = getNames(plist)
  const minSdkVersion = getField(plist, oldestSystem)
  const icon = kind === 'ios' ? await readBundleIcon(archive, folder, plist) : await readIcns(archive, folder, plist)
  return {
    ...names,
    minSdkVersion,
    targetSdkVersion: findTargetVersion(plist) ?? minSdkVersion,
    architectures: await readArchitectures(archive, executables, plist),
    ...(icon && { icon }),
  }
}

function findLayout(root: string, kind: AppleApp['kind']): Layout {
  const folder = root === '' ? '' : `${root}/`
  if (kind === 'ios') return { folder, executables: folder, oldestSystem: 'MinimumOSVersion' }
  const contents = `${folder}Contents/`
  return { folder: contents, executables: `${contents}MacOS/`, oldestSystem: 'LSMinimumSystemVersion' }
}

async function readArchitectures(archive: Archive, folder: string, plist: Plist): Promise<string[]> {
  const name = findText(plist, 'CFBundleExecutable')
  const entry = name === undefined ? undefined : archive.entries.get(folder + name)
  if (entry === undefined) return []
  return readMachArchitectures(await archive.readStart(entry, machHeaderBytes), entry.sizeBytes)
}
