import { UnanalyzableError } from '../app-facts.ts'
import type { Archive } from '../archive.ts'
import { cleanName, isWord } from '../text.ts'

const maxBytes = 64 * 1024

export type AppVersion = { appName: string | undefined; packageName: string | undefined }

/** What Flutter writes of the app into each of its bundles, out of its pubspec. */
export async function readAppVersion(archive: Archive, folder: string): Promise<AppVersion> {
  const entry = archive.entries.get(`${folder}data/flutter_assets/version.json`)
  if (entry === undefined) return { appName: undefined, packageName: undefined }
  const fields = parseFields((await archive.read(entry, maxBytes)).toString())
  const [appName, packageName] = [findText(fields, 'app_name'), findText(fields, 'package_name')]
  if (packageName !== undefined && !isWord(packageName)) refuse()
  return { appName: appName === undefined ? undefined : cleanName(appName), packageName }
}

function parseFields(text: string): object {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null) return value
  } catch {
    // Told below.
  }
  return refuse()
}

function findText(fields: object, key: string): string | undefined {
  const value: unknown = Object.hasOwn(fields, key) ? fields[key as keyof typeof fields] : undefined
  return typeof value === 'string' && value.trim() !== '' ? value.trim() : undefined
}

function refuse(): never {
  throw new UnanalyzableError('malformed_content', 'version.json')
}
