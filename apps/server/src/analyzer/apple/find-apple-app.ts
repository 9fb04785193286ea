import { comparePaths } from '../compare-paths.ts'

export type AppleApp = {
  /** The folder of the app bundle; empty when the archive is that folder. */
  root: string
  kind: 'ios' | 'macos'
}

/** The depth is exact, which leaves out frameworks, extensions, watch apps, symbols and what macOS adds to an archive. */
const appPath = /^((?:Payload\/|(?:[^/]+\.xcarchive\/)?Products\/Applications\/)?[^/]+\.app)\/(Contents\/)?Info\.plist$/

/** Of several apps the one with the shortest path, and of those the first by name. */
export function findAppleApp(names: Iterable<string>): AppleApp | undefined {
  const found: AppleApp[] = []
  let isBare = false
  for (const name of names) {
    const [, root, contents] = appPath.exec(name) ?? []
    if (root !== undefined) found.push({ root, kind: contents === undefined ? 'ios' : 'macos' })
    isBare ||= name === 'Contents/Info.plist'
  }
  // `ditto` packs what is in the folder without the folder, unless it is told to.
  const bare: AppleApp | undefined = isBare ? { root: '', kind: 'macos' } : undefined
  return found.reduce<AppleApp | undefined>((best, app) => (isBefore(app, best) ? app : best), undefined) ?? bare
}

function isBefore(app: AppleApp, best: AppleApp | undefined): boolean {
  if (best === undefined) return true
  if (app.root === best.root) return app.kind < best.kind
  return comparePaths(app.root, best.root) < 0
}

const frameworkPath = /^((?:[^/]+\/){0,2}([^/]+)\.xcframework)\/Info\.plist$/
const bareFramework = /^[^/]+\/[^/]+\.framework\//

/**
 * The folder of the framework that an app of another kind embeds. `App.xcframework` goes first, which has the code of a
 * Flutter module; the engine and plugins may lie beside it.
 */
export function findXcframework(names: Iterable<string>): string | undefined {
  const found: { root: string; isApp: boolean }[] = []
  let hasInfo = false
  let hasFramework = false
  for (const name of names) {
    const [, root, title] = frameworkPath.exec(name) ?? []
    if (root !== undefined && !name.startsWith('__MACOSX/')) found.push({ root, isApp: title === 'App' })
    hasInfo ||= name === 'Info.plist'
    hasFramework ||= bareFramework.test(name)
  }
  const apps = found.filter(({ isApp }) => isApp)
  const roots = (apps.length > 0 ? apps : found).map(({ root }) => root)
  const first = roots.reduce<string | undefined>(
    (best, root) => (best === undefined || comparePaths(root, best) < 0 ? root : best),
    undefined,
  )
  return first ?? (hasInfo && hasFramework ? '' : undefined)
}
