import { checkAttributeCount, createElementBuilder, type ElementBuilder } from './element-builder.ts'
import { beyondLimit, malformed } from './refusals.ts'
import type { XmlAttribute, XmlElement } from './xml.ts'

/** Where each kind of markup ends. None of them is nested: a declaration that is gets refused. */
const ignored = [
  { start: '<!--', end: '-->' },
  { start: '<![CDATA[', end: ']]>' },
  { start: '<?', end: '?>' },
] as const

/** The XML that a library has: as it was written, but what the tools of Android write of it. Text is left out. */
export function readTextXml(file: Buffer): XmlElement {
  const text = file.toString('utf8')
  const builder = createElementBuilder()
  const prefixes: Map<string, string>[] = [new Map()]
  for (let at = text.indexOf('<'); at !== -1; at = text.indexOf('<', at)) {
    const skipped = ignored.find(({ start }) => text.startsWith(start, at))
    const end = skipped === undefined ? readTag(text, at, { builder, prefixes }) : text.indexOf(skipped.end, at)
    if (end === -1) throw malformed('XML markup without an end')
    at = end + 1
  }
  return builder.finish()
}

// Sticky: what does not match is malformed at once, and no pattern can match in two ways.
const name = '[^\\s"\'<>/=&?!]+'
const endTag = new RegExp(`</${name}\\s*>`, 'y')
const startTag = new RegExp(`<(${name})`, 'y')
const attributePattern = new RegExp(`\\s+(${name})\\s*=\\s*(?:"([^"<]*)"|'([^'<]*)')`, 'y')
const tagEnd = /\s*(\/?)>/y

/** Each element that declares one copies those around it. */
const maxPrefixes = 64

type Reading = { builder: ElementBuilder; prefixes: Map<string, string>[] }

/** Returns where its last character is. */
function readTag(text: string, at: number, { builder, prefixes }: Reading): number {
  if (text[at + 1] === '/') {
    builder.end()
    prefixes.pop()
    return match(endTag, text, at).end - 1
  }
  const start = match(startTag, text, at)
  const pairs: [name: string, value: string][] = []
  let end = start.end
  for (;;) {
    attributePattern.lastIndex = end
    const found = attributePattern.exec(text)
    if (found === null) break
    checkAttributeCount(pairs.length + 1)
    pairs.push([found[1] ?? '', decodeEntities(found[2] ?? found[3] ?? '')])
    end = attributePattern.lastIndex
  }
  const close = match(tagEnd, text, end)
  const declared = pairs.filter(([key]) => key.startsWith('xmlns:')).map(([key, uri]) => [key.slice(6), uri] as const)
  const outer = prefixes.at(-1) ?? new Map<string, string>()
  const known = declared.length === 0 ? outer : new Map([...outer, ...declared])
  if (known.size > maxPrefixes) throw beyondLimit('too many XML namespaces')
  builder.start({ name: start.groups[1] ?? '', attributes: readAttributes(pairs, known), children: [] })
  if (close.groups[1] === '/') builder.end()
  else prefixes.push(known)
  return close.end - 1
}

function match(pattern: RegExp, text: string, at: number): { groups: RegExpExecArray; end: number } {
  pattern.lastIndex = at
  const groups = pattern.exec(text)
  if (groups === null) throw malformed('not the XML of a library')
  return { groups, end: pattern.lastIndex }
}

function readAttributes(pairs: [name: string, value: string][], prefixes: Map<string, string>): XmlAttribute[] {
  return pairs.map(([key, text]) => {
    const colon = key.indexOf(':')
    const namespace = colon === -1 ? '' : (prefixes.get(key.slice(0, colon)) ?? '')
    return { resourceId: 0, namespace, name: key.slice(colon + 1), value: { kind: 'text', text } }
  })
}

const entities: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }

/** Only those that XML has of itself: a document that declares its own was refused before. */
function decodeEntities(text: string): string {
  return text.replaceAll(/&(?:#(\d{1,7})|#x([\da-f]{1,6})|(\w{1,8}));/gi, (whole, decimal, hexadecimal, named) => {
    if (named !== undefined) return entities[named] ?? whole
    const code = decimal === undefined ? Number.parseInt(hexadecimal, 16) : Number(decimal)
    return code <= 0x10ffff ? String.fromCodePoint(code) : whole
  })
}
