import { UnanalyzableError } from '../app-facts.ts'
import { limits } from '../limits.ts'

const names = 'plist|dict|array|key|string|integer|real|true|false|date|data'
/** Of all attributes a property list knows but one. */
const tag = new RegExp(`<(/?)(${names})(?:\\s+version\\s*=\\s*["'][\\w.]*["'])?\\s*(/?)>`, 'y')
/** One with a part of its own, in brackets, could define entities. */
const doctype = /<!DOCTYPE[^<>[\]]*>/y
/** Those of an app are hundreds. 100,000 would take the parser 0.5 s and 150 MB. */
const maxTags = 20_000
const foreignEntity = /&(?!(?:amp|lt|gt|quot|apos|#\d{1,7}|#x[\da-f]{1,6});)/i

/** Parts that the parser never sees, and where they end. */
const hidden = [
  { start: '<!--', end: '-->' },
  { start: '<?', end: '?>' },
]
const cdata = { start: '<![CDATA[', end: ']]>' }

/**
 * The same property list in the plainest XML: well-formed tags without attributes, and text. The parser expands no entities
 * but calls itself for every level of nesting; comments and declarations go, as they could hide how deep it is.
 */
export function cleanXmlPlist(text: string): string {
  const parts: string[] = []
  const open: string[] = []
  let tags = 0
  for (let at = text.charCodeAt(0) === 0xfeff ? 1 : 0; at < text.length; ) {
    const part = readPart(text, at)
    at = part.end
    if ('text' in part) {
      if (open.length === 0 && part.text.trim() !== '') refuse()
      if (foreignEntity.test(part.text)) refuse()
      if (open.length > 0) parts.push(part.text)
      continue
    }
    if (!('tag' in part)) continue
    tags += 1
    if (tags > maxTags) exceed()
    if (open.length === 0 && (part.isEnd || parts.length > 0)) refuse()
    if (!part.isEnd) open.push(part.tag)
    if (open.length > limits.depth) exceed()
    parts.push(part.isEnd ? `</${part.tag}>` : `<${part.tag}${part.isEmpty ? '/' : ''}>`)
    if ((part.isEnd || part.isEmpty) && open.pop() !== part.tag) refuse()
  }
  if (open.length > 0 || parts.length === 0) refuse()
  return parts.join('')
}

type Part = { end: number } & ({ text: string } | { tag: string; isEnd: boolean; isEmpty: boolean } | { hidden: true })

function readPart(text: string, at: number): Part {
  if (text[at] !== '<') {
    const next = text.indexOf('<', at)
    const end = next === -1 ? text.length : next
    return { end, text: text.slice(at, end) }
  }
  for (const { start, end } of hidden) {
    if (text.startsWith(start, at)) return { end: findEnd(text, at + start.length, end) + end.length, hidden: true }
  }
  if (text.startsWith(cdata.start, at)) {
    const start = at + cdata.start.length
    const end = findEnd(text, start, cdata.end)
    return { end: end + cdata.end.length, text: escapeText(text.slice(start, end)) }
  }
  doctype.lastIndex = at
  if (doctype.test(text)) return { end: doctype.lastIndex, hidden: true }
  tag.lastIndex = at
  const [, slash, name, emptySlash] = tag.exec(text) ?? refuse()
  if (name === undefined || (slash === '/' && emptySlash === '/')) refuse()
  return { end: tag.lastIndex, tag: name, isEnd: slash === '/', isEmpty: emptySlash === '/' }
}

function findEnd(text: string, from: number, end: string): number {
  const found = text.indexOf(end, from)
  return found === -1 ? refuse() : found
}

function escapeText(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}

function refuse(): never {
  throw new UnanalyzableError('malformed_content', 'the property list is not of the XML that Apple defines')
}

function exceed(): never {
  throw new UnanalyzableError('limit_exceeded', 'the property list is nested too deeply, or has too many values')
}
