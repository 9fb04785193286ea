import type { ArchiveEntry } from '../archive.ts'
import { comparePaths } from '../compare-paths.ts'

export type DesktopApp = {
  /** The folder with the executable; empty when the archive is that folder. */
  root: string
  kind: 'linux' | 'windows'
}

/** What only the bundle of a Flutter app for that system has beside its executable. */
const marks: { path: string; kind: DesktopApp['kind'] }[] = [
  { path: 'lib/libapp.so', kind: 'linux' },
  { path: 'lib/libflutter_linux_gtk.so', kind: 'linux' },
  { path: 'flutter_windows.dll', kind: 'windows' },
]

/** Of several apps the one with the shortest path, and of those the first by name. */
export function findDesktopApp(entries: ReadonlyMap<string, ArchiveEntry>): DesktopApp | undefined {
  const found = new Map<string, DesktopApp>()
  for (const name of entries.keys()) {
    if (name.startsWith('__MACOSX/')) continue
    for (const { path, kind } of marks) {
      if (name !== path && !name.endsWith(`/${path}`)) continue
      const root = name.slice(0, Math.max(0, name.length - path.length - 1))
      found.set(`${kind} ${root}`, { root, kind })
    }
  }
  return findContents(entries, found).toSorted(compareApps)[0]
}

/** The first of them in a path: assets of the app may have any names. */
const dataPath = /(?:^|\/)data\/(?:flutter_assets\/|(app\.so)$)/

/** Those with the assets of an app, and on Windows with a program. One pass over the names, however many apps there are. */
function findContents(entries: ReadonlyMap<string, ArchiveEntry>, found: Map<string, DesktopApp>): DesktopApp[] {
  if (found.size === 0) return []
  const withAssets = new Set<string>()
  const withProgram = new Set<string>()
  for (const name of entries.keys()) {
    const match = dataPath.exec(name)
    if (match !== null) withAssets.add(`${match[1] === undefined ? 'any' : 'windows'} ${name.slice(0, match.index)}`)
    if (/\.exe$/i.test(name)) withProgram.add(name.slice(0, Math.max(0, name.lastIndexOf('/'))))
  }
  return [...found.values()].filter(({ root, kind }) => {
    if (kind === 'linux') return withAssets.has(`any ${root}`)
    return withProgram.has(root) && (withAssets.has(`any ${root}`) || withAssets.has(`windows ${root}`))
  })
}

function compareApps(left: DesktopApp, right: DesktopApp): number {
  return comparePaths(left.root, right.root) || (left.kind < right.kind ? -1 : 1)
}
