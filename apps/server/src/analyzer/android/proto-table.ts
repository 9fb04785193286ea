import { limits } from '../limits.ts'
import { decodeText, findMessage, findNumber, openMessage, type ProtoMessage, readFields } from './proto-fields.ts'
import { decodeItem } from './proto-values.ts'
import { beyondLimit } from './refusals.ts'
import type { Configuration, ConfiguredValue, ResourceReference, ResourceTable } from './values.ts'

// Numbers of fields: Resources.proto of aapt2.
const tablePackage = 2
const pack = { id: 1, type: 3 } as const
const type = { id: 1, name: 2, entry: 3 } as const
const entry = { id: 1, name: 2, configValue: 6 } as const
const configuration = { locale: 3, density: 18, product: 25, sdk: 24 } as const

/** Ids of types have eight bits, those of entries sixteen. */
const maxTypes = 256 * 16
const maxEntries = 0x10000

/** Ids of the entries of a type, and their names: whichever a reference has. */
type TypeIndex = { byId: Map<number, ProtoMessage>; byName: Map<string, ProtoMessage> }

type Type = { packageId: number; id: number; name: string; message: ProtoMessage; index?: TypeIndex }

/** The resources.pb of an app bundle. The entries of a type are found when one of them is asked for. */
export function readProtoTable(file: Uint8Array): ResourceTable {
  const types: Type[] = []
  for (const { number, value } of readFields(openMessage(file))) {
    if (number === tablePackage && typeof value !== 'number') types.push(...readTypes(value, maxTypes - types.length))
  }
  return (reference) => {
    const found: ConfiguredValue[] = []
    for (const message of findEntries(types, reference)) {
      for (const configured of readConfigValues(message)) {
        found.push(configured)
        if (found.length === limits.configurationsPerEntry) return found
      }
    }
    return found
  }
}

function readTypes(message: ProtoMessage, room: number): Type[] {
  const types: Type[] = []
  const packageId = findNumber(findMessage(message, pack.id), 1)
  for (const { number, value } of readFields(message)) {
    if (number !== pack.type || typeof value === 'number') continue
    if (types.length >= room) throw beyondLimit('too many types of resources')
    const id = findNumber(findMessage(value, type.id), 1)
    types.push({ packageId, id, name: decodeText(findMessage(value, type.name)), message: value })
  }
  return types
}

function findEntries(types: Type[], { id, name }: ResourceReference): ProtoMessage[] {
  if (id !== 0) {
    const found = types.filter((each) => each.packageId === id >>> 24 && each.id === ((id >>> 16) & 0xff))
    const entries = found.flatMap((each) => indexType(each).byId.get(id & 0xffff) ?? [])
    if (entries.length > 0) return entries
  }
  // A name may have its package in front: `com.example:string/app_name`.
  const [typeName, entryName] = (name ?? '').replace(/^[^:/]*:/, '').split('/')
  if (entryName === undefined) return []
  return types.filter((each) => each.name === typeName).flatMap((each) => indexType(each).byName.get(entryName) ?? [])
}

function indexType(found: Type): TypeIndex {
  if (found.index !== undefined) return found.index
  const index: TypeIndex = { byId: new Map(), byName: new Map() }
  let count = 0
  for (const { number, value } of readFields(found.message)) {
    if (number !== type.entry || typeof value === 'number') continue
    count += 1
    if (count > maxEntries) throw beyondLimit('too many resources of a type')
    const { id, name } = readIdentity(value)
    index.byId.set(id, value)
    index.byName.set(name, value)
  }
  found.index = index
  return index
}

/** Both stand before the values, of which there may be many. */
function readIdentity(message: ProtoMessage): { id: number; name: string } {
  let id = 0
  for (const { number, value } of readFields(message)) {
    if (number === entry.id && typeof value !== 'number') id = findNumber(value, 1)
    else if (number === entry.name && typeof value !== 'number') return { id, name: decodeText(value) }
    else if (number > entry.name) break
  }
  return { id, name: '' }
}

function* readConfigValues(message: ProtoMessage): Generator<ConfiguredValue> {
  let count = 0
  for (const { number, value } of readFields(message)) {
    if (number !== entry.configValue || typeof value === 'number') continue
    count += 1
    if (count > limits.configurationsPerEntry) return
    // ConfigValue.value.item
    const item = findMessage(value, 2, 4)
    const decoded = item === undefined ? undefined : decodeItem(item)
    if (decoded !== undefined) yield { configuration: readConfiguration(findMessage(value, 1)), value: decoded }
  }
}

function readConfiguration(message: ProtoMessage | undefined): Configuration {
  const found: Configuration = { locale: '', density: 0, sdk: 0, isPlain: true }
  if (message === undefined) return found
  for (const { number, value } of readFields(message)) {
    if (number === configuration.density && typeof value === 'number') found.density = value
    else if (number === configuration.sdk && typeof value === 'number') found.sdk = value
    else if (number === configuration.locale && typeof value !== 'number') found.locale = decodeText(value)
    else if (number !== configuration.product && value !== 0) found.isPlain = false
  }
  if (found.locale !== '') found.isPlain = false
  return found
}
