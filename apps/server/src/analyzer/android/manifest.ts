import { UnanalyzableError } from '../app-facts.ts'
import { readOptional } from '../optional.ts'
import { cleanName } from '../text.ts'
import { malformed } from './refusals.ts'
import { resolveValue } from './resolve.ts'
import type { ResourceTable, ResourceValue } from './values.ts'
import { type AttributeName, findAttribute, findPlainText, type XmlElement } from './xml.ts'

export type ManifestFacts = {
  packageName: string
  /** undefined: it names no label, or one that cannot be resolved. */
  label: string | undefined
  minSdkVersion: string
  targetSdkVersion: string
  /** What may be its icon, the best first. */
  icons: ResourceValue[]
}

const packagePattern = /^[\p{L}\p{N}_.-]{1,255}$/u

export function readManifest(manifest: XmlElement, table: ResourceTable): ManifestFacts {
  if (manifest.name !== 'manifest') throw malformed('AndroidManifest.xml is not a manifest')
  const packageName = findPlainText(manifest, 'package')
  if (packageName === undefined || packageName === '') throw new UnanalyzableError('missing_field', 'package')
  if (!packagePattern.test(packageName)) throw malformed('the package of the manifest is not a name')
  // Only directly in the manifest: an activity has a label and an icon, too.
  const application = manifest.children.find(({ name }) => name === 'application')
  const sdkVersions = manifest.children.filter(({ name }) => name === 'uses-sdk')
  const findVersion = (name: AttributeName) => {
    const found = sdkVersions.map((element) => findAttribute(element, name)).find((value) => value !== undefined)
    return readText(table, found)
  }
  const minSdkVersion = findVersion('minSdkVersion') ?? '1'
  const icons = (['icon', 'roundIcon'] as const).map((name) => application && findAttribute(application, name))
  return {
    packageName,
    label: readText(table, application && findAttribute(application, 'label')),
    minSdkVersion,
    targetSdkVersion: findVersion('targetSdkVersion') ?? minSdkVersion,
    icons: icons.filter((value) => value !== undefined),
  }
}

/** A reference into a part of the table that is broken leads nowhere: the rest of the manifest is as sound as before. */
function readText(table: ResourceTable, value: ResourceValue | undefined): string | undefined {
  const found = readOptional(() => resolveValue(table, value))
  if (found?.kind === 'number') return String(found.number)
  return found?.kind === 'text' ? cleanName(found.text) : undefined
}
