import { limits } from '../limits.ts'
import { beyondLimit } from './refusals.ts'
import type { ConfiguredValue, ResourceTable, ResourceValue } from './values.ts'

const maxLookups = 4096

/** Remembers what was found: an icon asks for the same colors again and again. */
export function rememberLookups(table: ResourceTable): ResourceTable {
  const known = new Map<string, ConfiguredValue[]>()
  return (reference) => {
    const key = `${reference.id} ${reference.name ?? ''}`
    const before = known.get(key)
    if (before !== undefined) return before
    if (known.size === maxLookups) throw beyondLimit('too many references to resources')
    const found = table(reference)
    known.set(key, found)
    return found
  }
}

/** What a value is in the default configuration, behind all references; undefined when they lead nowhere. */
export function resolveValue(table: ResourceTable, value: ResourceValue | undefined): ResourceValue | undefined {
  let current = value
  for (let hop = 0; current?.kind === 'reference'; hop += 1) {
    if (hop === limits.referenceHops) return undefined
    current = chooseDefault(table(current.reference))
  }
  return current
}

/** The value without qualifiers, of the newest system where that decides; else English; else the first. */
function chooseDefault(values: ConfiguredValue[]): ResourceValue | undefined {
  const plain = values.filter(({ configuration }) => configuration.isPlain)
  const [newest] = plain.toSorted((a, b) => b.configuration.sdk - a.configuration.sdk)
  const chosen = newest ?? values.find(({ configuration }) => /^en(-|$)/.test(configuration.locale)) ?? values[0]
  return chosen?.value
}

/** What a value is in all configurations, behind all references, the most fitting for an icon first. */
export function resolveAll(table: ResourceTable, value: ResourceValue): ConfiguredValue[] {
  const found: ConfiguredValue[] = []
  const visited = new Set<string>()
  const open = [{ configured: { configuration: anyConfiguration, value }, hops: 0 }]
  for (const { configured, hops } of open) {
    if (configured.value.kind !== 'reference') {
      found.push(configured)
      continue
    }
    const { id, name } = configured.value.reference
    const key = `${id} ${name ?? ''}`
    if (visited.has(key) || hops === limits.referenceHops) continue
    visited.add(key)
    for (const next of table(configured.value.reference)) open.push({ configured: next, hops: hops + 1 })
    if (open.length > limits.configurationsPerEntry) break
  }
  return found.toSorted((a, b) => rankConfiguration(b) - rankConfiguration(a))
}

const anyConfiguration = { locale: '', density: 0, sdk: 0, isPlain: true }

const anyDensity = 0xfffe
const noDensity = 0xffff
const densityOfDefault = 160

/** Pixels per inch; 0 for what fits every density. */
export function readDensity(density: number): number {
  if (density === anyDensity) return 0
  return density === 0 || density === noDensity ? densityOfDefault : density
}

/** Of those for any language, day and size: the highest density, then the newest system. */
function rankConfiguration({ configuration }: ConfiguredValue): number {
  const { locale, density, sdk, isPlain } = configuration
  const generality = isPlain ? 2 : locale === '' ? 1 : 0
  return (generality * 0x10000 + readDensity(density)) * 0x10000 + sdk
}
