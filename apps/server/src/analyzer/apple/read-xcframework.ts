import { type AppFacts, UnanalyzableError } from '../app-facts.ts'
import type { Archive } from '../archive.ts'
import { findTargetVersion, getField, getNames } from './bundle-fields.ts'
import { findDictionaries, findText, findTexts, type Plist, readPlistEntry } from './read-plist.ts'

/** One for every system and for its simulator; Apple has 6 systems. */
const maxLibraries = 32
const maxArchitectures = 16
const architecture = /^\w{1,32}$/

/** Where a framework keeps its own property list; that of macOS has its versions in folders. */
const innerPlists = ['Info.plist', 'Versions/A/Resources/Info.plist', 'Resources/Info.plist']

/** What the framework that a Flutter module is built into says. It has no icon. */
export async function readXcframework(archive: Archive, root: string): Promise<AppFacts> {
  const folder = root === '' ? '' : `${root}/`
  const entry = archive.entries.get(`${folder}Info.plist`)
  if (entry === undefined) throw new UnanalyzableError('unknown_format', 'there is no Info.plist')
  const all = findDictionaries(await readPlistEntry(archive, entry), 'AvailableLibraries').slice(0, maxLibraries)
  const libraries = chooseLibraries(all)
  if (libraries.length === 0) throw new UnanalyzableError('missing_field', 'AvailableLibraries')
  const plist = await readFramework(archive, folder, libraries)
  const minSdkVersion = getField(plist, chooseOldestSystem(plist))
  return {
    ...getNames(plist),
    minSdkVersion,
    targetSdkVersion: findTargetVersion(plist) ?? minSdkVersion,
    architectures: findArchitectures(libraries),
  }
}

/** Those for devices, when there are any: a simulator runs on other machines. */
function chooseLibraries(libraries: Plist[]): Plist[] {
  const forDevices = libraries.filter((library) => findText(library, 'SupportedPlatformVariant') !== 'simulator')
  return forDevices.length > 0 ? forDevices : libraries
}

async function readFramework(archive: Archive, folder: string, libraries: Plist[]): Promise<Plist> {
  for (const library of libraries) {
    const [identifier, path] = [findText(library, 'LibraryIdentifier'), findText(library, 'LibraryPath')]
    for (const name of innerPlists) {
      const entry = archive.entries.get(`${folder}${identifier}/${path}/${name}`)
      if (entry !== undefined) return readPlistEntry(archive, entry)
    }
  }
  throw new UnanalyzableError('missing_field', 'CFBundleIdentifier')
}

function chooseOldestSystem(plist: Plist): string {
  const name = 'LSMinimumSystemVersion'
  return findText(plist, name) === undefined ? 'MinimumOSVersion' : name
}

function findArchitectures(libraries: Plist[]): string[] {
  const names = libraries.flatMap((library) => findTexts(library, 'SupportedArchitectures').slice(0, maxArchitectures))
  return [...new Set(names.filter((name) => architecture.test(name)))]
}
