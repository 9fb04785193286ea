import { readAndroidApp } from './android/read-android-app.ts'
import { type AnalyzedApp, UnanalyzableError } from './app-facts.ts'
import { findAppleApp, findXcframework } from './apple/find-apple-app.ts'
import { readAppleApp } from './apple/read-apple-app.ts'
import { readXcframework } from './apple/read-xcframework.ts'
import type { Archive, ByteSource } from './archive.ts'
import { findDesktopApp } from './desktop/find-desktop-app.ts'
import { readDesktopApp } from './desktop/read-desktop-app.ts'
import { openArchive } from './open-archive.ts'

/**
 * Reads what an archive says of the app in it. Throws an UnanalyzableError when it says too little, and whatever `source`
 * throws. Hostile archives are expected, and to be read only where nothing is lost with the process: `run-analyzer.ts`.
 */
export async function analyzeArchive(source: ByteSource): Promise<AnalyzedApp> {
  const archive = await openArchive(source)
  const android = await findAndroidFormat(archive)
  if (android !== undefined) return { ...(await readAndroidApp(archive, android)), platform: 'android' }
  const names = [...archive.entries.keys()]
  const appleApp = findAppleApp(names)
  if (appleApp !== undefined) return { ...(await readAppleApp(archive, appleApp)), platform: appleApp.kind }
  const xcframework = findXcframework(names)
  if (xcframework !== undefined) return { ...(await readXcframework(archive, xcframework)), platform: 'ios' }
  const desktopApp = findDesktopApp(archive.entries)
  if (desktopApp !== undefined) return { ...(await readDesktopApp(archive, desktopApp)), platform: desktopApp.kind }
  throw new UnanalyzableError('unknown_format', 'no app of a known kind is in it')
}

/** The first bytes of binary XML: its kind, and the size of its header. */
const binaryXmlStart = Buffer.from([0x03, 0x00, 0x08, 0x00])

/** By what is in it: the name of an archive is its sender's, and says nothing. */
async function findAndroidFormat({ entries, readStart }: Archive): Promise<'aab' | 'apk' | 'aar' | undefined> {
  if (entries.has('base/manifest/AndroidManifest.xml')) return 'aab'
  const manifest = entries.get('AndroidManifest.xml')
  if (manifest === undefined) return undefined
  const start = await readStart(manifest, binaryXmlStart.length)
  if (start.equals(binaryXmlStart)) return 'apk'
  return entries.has('classes.jar') || isTextXml(await readStart(manifest, 16)) ? 'aar' : 'apk'
}

/** After a byte order mark and spaces. */
function isTextXml(start: Buffer): boolean {
  return start
    .toString('utf8')
    .replace(/^\ufeff/, '')
    .trimStart()
    .startsWith('<')
}
