import { decodeText, findMessage, findNumber, type ProtoMessage, readFields } from './proto-fields.ts'
import { decodeDimension, decodeFloat, decodeFraction, type ResourceValue } from './values.ts'

// Numbers of fields: Resources.proto of aapt2. Item and what is in it.
const item = { reference: 1, text: 2, rawText: 3, styledText: 4, file: 5, primitive: 7 } as const
const reference = { id: 2, name: 3 } as const
const primitive = { float: 3, boolean: 8, firstColor: 9, lastColor: 12, dimension: 13, fraction: 14 } as const

/** undefined for a kind of value that nothing here asks for. */
export function decodeItem(message: ProtoMessage): ResourceValue | undefined {
  for (const { number, value } of readFields(message)) {
    if (typeof value === 'number') continue
    switch (number) {
      case item.reference:
        return decodeReference(value)
      case item.text:
      case item.rawText:
      case item.styledText:
      case item.file:
        return { kind: 'text', text: decodeText(findMessage(value, 1)) }
      case item.primitive:
        return decodePrimitive(value)
    }
  }
  return undefined
}

/** undefined for one to an attribute of a theme, which is not known here. */
function decodeReference(message: ProtoMessage): ResourceValue | undefined {
  if (findNumber(message, 1) !== 0) return undefined
  const id = findNumber(message, reference.id)
  const name = decodeText(findMessage(message, reference.name))
  if (id === 0 && name === '') return undefined
  return { kind: 'reference', reference: { id, ...(name === '' ? {} : { name }) } }
}

function decodePrimitive(message: ProtoMessage): ResourceValue | undefined {
  for (const { number, value } of readFields(message)) {
    if (typeof value !== 'number') continue
    if (number === primitive.float) return decodeFloat(value)
    if (number === primitive.dimension) return decodeDimension(value)
    if (number === primitive.fraction) return decodeFraction(value)
    if (number >= primitive.firstColor && number <= primitive.lastColor) return { kind: 'color', argb: value }
    if (number > primitive.float && number <= primitive.boolean) return { kind: 'number', number: value | 0 }
  }
  return undefined
}
