import { checkAttributeCount, createElementBuilder, type ElementBuilder } from './element-builder.ts'
import { decodeText, findMessage, openMessage, type ProtoMessage, readFields } from './proto-fields.ts'
import { decodeItem } from './proto-values.ts'
import { malformed } from './refusals.ts'
import type { XmlAttribute, XmlElement } from './xml.ts'

// Numbers of fields: Resources.proto of aapt2.
const nodeElement = 1
const elementName = 3
const elementAttribute = 4
const elementChild = 5

/** The XML that an app bundle has. */
export function readProtoXml(file: Uint8Array): XmlElement {
  const builder = createElementBuilder()
  readNode(openMessage(file), builder)
  return builder.finish()
}

/** As deep as the builder allows. */
function readNode(message: ProtoMessage, builder: ElementBuilder): void {
  const found = findMessage(message, nodeElement)
  if (found === undefined) return
  const element: XmlElement = { name: '', attributes: [], children: [] }
  builder.start(element)
  for (const { number, value } of readFields(found)) {
    if (number < elementName || number > elementChild) continue
    if (typeof value === 'number') throw malformed('an XML element has a number for a part')
    if (number === elementName) element.name = decodeText(value)
    if (number === elementChild) readNode(value, builder)
    if (number !== elementAttribute) continue
    checkAttributeCount(element.attributes.length + 1)
    element.attributes.push(readAttribute(value))
  }
  builder.end()
}

const attributeParts = { namespace: 1, name: 2, text: 3, resourceId: 5, item: 6 } as const

function readAttribute(message: ProtoMessage): XmlAttribute {
  const attribute: XmlAttribute = { resourceId: 0, namespace: '', name: '', value: undefined }
  let text: string | undefined
  let hasItem = false
  for (const { number, value } of readFields(message)) {
    if (typeof value === 'number') {
      if (number === attributeParts.resourceId) attribute.resourceId = value
      continue
    }
    if (number === attributeParts.namespace) attribute.namespace = decodeText(value)
    if (number === attributeParts.name) attribute.name = decodeText(value)
    if (number === attributeParts.text) text = decodeText(value)
    if (number !== attributeParts.item) continue
    hasItem = true
    attribute.value = decodeItem(value)
  }
  if (!hasItem && text !== undefined) attribute.value = { kind: 'text', text }
  return attribute
}
