import { type Drawing, findNumberOf } from './drawing.ts'
import { resolveValue } from './resolve.ts'
import { formatColor, formatNumber, formatNumbers } from './svg.ts'
import type { ResourceValue } from './values.ts'
import { findAttribute, type XmlElement } from './xml.ts'

export type Paint = { kind: 'color'; argb: number } | { kind: 'gradient'; gradient: Gradient }

export type Gradient = {
  type: 'linear' | 'radial'
  /** `x1`, `y1`, `x2`, `y2`, or `cx`, `cy`, `r`. */
  place: Record<string, number>
  stops: Stop[]
  spread: 'pad' | 'repeat' | 'reflect'
}

export type Stop = { offset: number; argb: number }

/** A color, a list of colors for states, or a gradient. undefined: a color of a theme, or none. */
export async function findPaint(drawing: Drawing, value: ResourceValue | undefined): Promise<Paint | undefined> {
  const resolved = resolveValue(drawing.table, value)
  if (resolved?.kind === 'color') return { kind: 'color', argb: resolved.argb }
  if (resolved?.kind !== 'text') return undefined
  const { text } = resolved
  return drawing.withXml(text, await drawing.readFile(text), (root) => readPaint(drawing, root))
}

/** The root of a file of colors, or what stands in its place within a drawing. */
export async function readPaint(drawing: Drawing, root: XmlElement): Promise<Paint | undefined> {
  if (root.name === 'gradient') return readGradient(drawing, root)
  if (root.name !== 'selector') return undefined
  // The last one is for the state in which an icon is: none in particular.
  const item = root.children.findLast(({ name }) => name === 'item')
  const paint = item && (await findPaint(drawing, findAttribute(item, 'color')))
  if (item === undefined || paint?.kind !== 'color') return undefined
  return { kind: 'color', argb: fade(paint.argb, findNumberOf(drawing, item, 'alpha') ?? 1) }
}

function fade(argb: number, alpha: number): number {
  const faded = Math.round((argb >>> 24) * Math.min(Math.max(alpha, 0), 1))
  return ((faded << 24) | (argb & 0xffffff)) >>> 0
}

const gradientTypes = ['linear', 'radial', 'sweep'] as const
const spreads = ['pad', 'repeat', 'reflect'] as const

async function readGradient(drawing: Drawing, element: XmlElement): Promise<Paint | undefined> {
  const stops = await readStops(drawing, element)
  const [first] = stops
  if (first === undefined) return undefined
  const number = (name: 'startX' | 'startY' | 'endX' | 'endY' | 'centerX' | 'centerY' | 'gradientRadius') =>
    findNumberOf(drawing, element, name) ?? 0
  const type = gradientTypes[findNumberOf(drawing, element, 'type') ?? 0]
  const spread = spreads[findNumberOf(drawing, element, 'tileMode') ?? 0] ?? 'pad'
  if (type === 'radial') {
    const place = { cx: number('centerX'), cy: number('centerY'), r: number('gradientRadius') }
    return { kind: 'gradient', gradient: { type, place, stops, spread } }
  }
  if (type !== 'linear') return { kind: 'color', argb: averageColor(stops) }
  const place = { x1: number('startX'), y1: number('startY'), x2: number('endX'), y2: number('endY') }
  return { kind: 'gradient', gradient: { type, place, stops, spread } }
}

/** SVG has no gradient that goes around a center. */
export function averageColor(stops: Stop[]): number {
  const average = (shift: number) =>
    Math.round(stops.reduce((sum, { argb }) => sum + ((argb >>> shift) & 0xff), 0) / Math.max(stops.length, 1))
  return ((average(24) << 24) | (average(16) << 16) | (average(8) << 8) | average(0)) >>> 0
}

export async function readStops(drawing: Drawing, element: XmlElement): Promise<Stop[]> {
  const items = element.children.filter(({ name }) => name === 'item')
  const stops: Stop[] = []
  for (const item of items) {
    const paint = await findPaint(drawing, findAttribute(item, 'color'))
    const offset = findNumberOf(drawing, item, 'offset') ?? 0
    if (paint?.kind === 'color') stops.push({ offset, argb: paint.argb })
  }
  if (stops.length > 0) return stops
  const ends = [
    ['startColor', 0],
    ['centerColor', 0.5],
    ['endColor', 1],
  ] as const
  for (const [name, offset] of ends) {
    const paint = await findPaint(drawing, findAttribute(element, name))
    if (paint?.kind === 'color') stops.push({ offset, argb: paint.argb })
  }
  return stops
}

/** The attributes that paint an element, behind the definition that they need, if any. */
export function formatPaint(
  drawing: Drawing,
  name: 'fill' | 'stroke',
  { paint, alpha }: { paint: Paint | undefined; alpha: number },
): { definition: string; attributes: string } {
  if (paint === undefined) return { definition: '', attributes: ` ${name}="none"` }
  if (paint.kind === 'color') return { definition: '', attributes: formatColor(name, paint.argb, alpha) }
  const { type, place, stops, spread } = paint.gradient
  drawing.spend('gradients', 1)
  const id = drawing.createId()
  const formatted = stops.map(({ offset, argb }) => {
    const clamped = Math.min(Math.max(offset, 0), 1)
    return `<stop offset="${formatNumber(clamped)}"${formatColor('stop', argb, alpha)}/>`
  })
  const tag = `${type}Gradient`
  const definition = `<${tag} id="${id}" gradientUnits="userSpaceOnUse" spreadMethod="${spread}"${formatNumbers(place)}>${formatted.join('')}</${tag}>`
  return { definition, attributes: ` ${name}="url(#${id})"` }
}

/** Takes the color of `tint`, but keeps what is transparent. */
export function tintPaint(paint: Paint | undefined, tint: number | undefined): Paint | undefined {
  if (paint === undefined || tint === undefined) return paint
  const apply = (argb: number) => fade(tint, (argb >>> 24) / 255)
  if (paint.kind === 'color') return { kind: 'color', argb: apply(paint.argb) }
  const stops = paint.gradient.stops.map(({ offset, argb }) => ({ offset, argb: apply(argb) }))
  return { kind: 'gradient', gradient: { ...paint.gradient, stops } }
}
