import { UnanalyzableError } from '../app-facts.ts'
import { cleanName, isWord } from '../text.ts'
import { findText, type Plist } from './read-plist.ts'

/** Throws unless the bundle says it. */
export function getField(plist: Plist, key: string): string {
  const value = findText(plist, key)
  if (value === undefined) throw new UnanalyzableError('missing_field', key)
  return checkWord(value, key)
}

export function getNames(plist: Plist): { displayName: string; packageName: string } {
  const packageName = getField(plist, 'CFBundleIdentifier')
  const titles = ['CFBundleDisplayName', 'CFBundleName'].map((key) => findText(plist, key))
  const displayName = titles.map((title) => title && cleanName(title)).find((title) => title)
  return { displayName: displayName ?? packageName, packageName }
}

/** The version of the system that it was built for, which `DTSDKName` has at its end: `iphoneos17.4`. */
export function findTargetVersion(plist: Plist): string | undefined {
  const platform = findText(plist, 'DTPlatformVersion')
  if (platform !== undefined) return checkWord(platform, 'DTPlatformVersion')
  const sdk = findText(plist, 'DTSDKName')
  return sdk && /^[a-z_]{1,32}(\d[\d.]{0,31})$/i.exec(sdk)?.[1]
}

function checkWord(value: string, key: string): string {
  if (!isWord(value)) throw new UnanalyzableError('malformed_content', key)
  return value
}
