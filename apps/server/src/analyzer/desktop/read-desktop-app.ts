import { type AppFacts, UnanalyzableError } from '../app-facts.ts'
import type { Archive, ArchiveEntry } from '../archive.ts'
import { elfStartBytes, readElf } from '../executables/read-elf.ts'
import { peStartBytes, readPe } from '../executables/read-pe.ts'
import { cleanName } from '../text.ts'
import type { DesktopApp } from './find-desktop-app.ts'
import { readAppVersion } from './read-app-version.ts'
import { readPeIcon } from './read-pe-icon.ts'

/** Files beside the executable whose first bytes are looked at. */
const maxCandidates = 16

export async function readDesktopApp(archive: Archive, { root, kind }: DesktopApp): Promise<AppFacts> {
  const folder = root === '' ? '' : `${root}/`
  const { appName, packageName } = await readAppVersion(archive, folder)
  const candidates = findCandidates(archive, { folder, kind, appName })
  const program = kind === 'linux' ? await readLinux(archive, candidates) : await readWindows(archive, candidates)
  if (program === undefined) throw new UnanalyzableError('malformed_content', 'no executable can be read')
  const { name, architecture, minVersion, targetVersion, icon } = program
  if (packageName === undefined) throw new UnanalyzableError('missing_field', 'package_name')
  if (minVersion === undefined) throw new UnanalyzableError('missing_field', 'min_sdk_version')
  return {
    displayName: appName ?? cleanName(name) ?? packageName,
    packageName,
    minSdkVersion: minVersion,
    targetSdkVersion: targetVersion ?? minVersion,
    architectures: architecture === undefined ? [] : [architecture],
    ...(icon && { icon }),
  }
}

type Program = {
  /** Without its extension. */
  name: string
  architecture: string | undefined
  minVersion: string | undefined
  targetVersion?: string
  icon?: Buffer | undefined
}

type Candidate = { name: string; entry: ArchiveEntry }

async function readLinux(archive: Archive, candidates: Candidate[]): Promise<Program | undefined> {
  for (const { name, entry } of candidates) {
    const facts = readElf(await archive.readStart(entry, elfStartBytes))
    if (facts !== undefined) return { name, architecture: facts.architecture, minVersion: facts.kernelVersion }
  }
  return undefined
}

/** The version of the subsystem is what Windows refuses to run a program by. */
async function readWindows(archive: Archive, candidates: Candidate[]): Promise<Program | undefined> {
  for (const { name, entry } of candidates) {
    const facts = readPe(await archive.readStart(entry, peStartBytes))
    if (facts === undefined) continue
    return {
      name: name.slice(0, -'.exe'.length),
      architecture: facts.architecture,
      minVersion: facts.subsystemVersion,
      targetVersion: facts.operatingSystemVersion,
      icon: await readPeIcon(archive, entry),
    }
  }
  return undefined
}

/** Files of the folder itself that may be the program: first the one that is called as the app, then by name. */
function findCandidates(
  archive: Archive,
  { folder, kind, appName }: { folder: string; kind: DesktopApp['kind']; appName: string | undefined },
): Candidate[] {
  const extension = kind === 'windows' ? '.exe' : ''
  const candidates: Candidate[] = []
  for (const [path, entry] of archive.entries) {
    if (!path.startsWith(folder) || path.includes('/', folder.length)) continue
    const name = path.slice(folder.length)
    if (kind === 'linux' || /\.exe$/i.test(name)) candidates.push({ name, entry })
  }
  const rank = ({ name }: Candidate): number => {
    if (appName !== undefined && name.toLowerCase() === `${appName}${extension}`.toLowerCase()) return 0
    return kind === 'linux' && name.includes('.') ? 2 : 1
  }
  const compare = (left: Candidate, right: Candidate): number => {
    return rank(left) - rank(right) || (left.name < right.name ? -1 : Number(left.name > right.name))
  }
  return candidates.sort(compare).slice(0, maxCandidates)
}
