import { type Drawing, findNumberOf } from './drawing.ts'
import { findPaint, formatPaint, type Paint, readPaint, tintPaint } from './paints.ts'
import { malformed } from './refusals.ts'
import { resolveValue } from './resolve.ts'
import { type Box, formatBox, formatNumber, formatNumbers, type PathData, readPathData } from './svg.ts'
import { type AttributeName, findAttribute, findPlainText, type XmlElement } from './xml.ts'

type Vector = {
  drawing: Drawing
  tint: number | undefined
  /** The largest number that a path may have. */
  maxReach: number
  /** How many numbers are in the paths that clip what is drawn. */
  clipCount: number
}

/** Of the size of the vector. Curves take the longer to draw the larger they are, also where nothing is seen of them. */
const maxReach = 4

/** A VectorDrawable as SVG, stretched to a box. */
export async function drawVector(drawing: Drawing, root: XmlElement, box: Box): Promise<string> {
  const width = findNumberOf(drawing, root, 'viewportWidth') ?? 0
  const height = findNumberOf(drawing, root, 'viewportHeight') ?? 0
  if (!(width > 0 && height > 0)) throw malformed('a vector has no viewport')
  const tint = await findPaint(drawing, findAttribute(root, 'tint'))
  const vector = {
    drawing,
    tint: tint?.kind === 'color' ? tint.argb : undefined,
    maxReach: maxReach * Math.max(width, height),
    clipCount: 0,
  }
  const content = await drawChildren(vector, root)
  const opacity = formatOpacity('opacity', findNumberOf(drawing, root, 'alpha'))
  const view = `viewBox="0 0 ${formatNumber(width)} ${formatNumber(height)}" preserveAspectRatio="none"`
  return `<svg${formatBox(box)} ${view}><g${opacity}>${content}</g></svg>`
}

function formatOpacity(name: string, alpha: number | undefined): string {
  return alpha === undefined ? '' : formatNumbers({ [name]: Math.min(Math.max(alpha, 0), 1) })
}

async function drawChildren(vector: Vector, parent: XmlElement): Promise<string> {
  let svg = ''
  let clips = 0
  let inner = vector
  for (const child of parent.children) {
    if (child.name === 'path') svg += await drawPath(inner, child)
    else if (child.name === 'group') svg += await drawGroup(inner, child)
    else if (child.name === 'clip-path') {
      // Holds for what comes behind it, up to the end of the group.
      const clip = findPathData(inner, child)
      svg += openClip(inner.drawing, child, clip)
      inner = { ...inner, clipCount: inner.clipCount + clip.count }
      clips += 1
    }
  }
  return svg + '</g>'.repeat(clips)
}

async function drawGroup(vector: Vector, group: XmlElement): Promise<string> {
  const find = (name: AttributeName) => findNumberOf(vector.drawing, group, name)
  const [pivotX, pivotY] = [find('pivotX') ?? 0, find('pivotY') ?? 0]
  const call = (name: string, ...values: number[]) => `${name}(${values.map(formatNumber).join(' ')})`
  const [scaleX, scaleY] = [find('scaleX') ?? 1, find('scaleY') ?? 1]
  const scale = Math.max(Math.abs(scaleX), Math.abs(scaleY))
  const inner = { ...vector, maxReach: vector.maxReach / scale }
  const transform = [
    call('translate', (find('translateX') ?? 0) + pivotX, (find('translateY') ?? 0) + pivotY),
    call('rotate', find('rotation') ?? 0),
    call('scale', scaleX, scaleY),
    call('translate', -pivotX, -pivotY),
  ].join(' ')
  return `<g transform="${transform}">${await drawChildren(inner, group)}</g>`
}

function openClip(drawing: Drawing, element: XmlElement, { data }: PathData): string {
  drawing.spend('clips', 1)
  const id = drawing.createId()
  const path = `<path d="${data}" clip-rule="${findFillRule(drawing, element)}"/>`
  return `<clipPath id="${id}">${path}</clipPath><g clip-path="url(#${id})">`
}

const caps = ['butt', 'round', 'square'] as const
const joins = ['miter', 'round', 'bevel'] as const

async function drawPath(vector: Vector, element: XmlElement): Promise<string> {
  const { drawing } = vector
  const find = (name: AttributeName) => findNumberOf(drawing, element, name)
  const { data, count } = findPathData(vector, element)
  const fillPaint = await findPathPaint(vector, element, 'fillColor')
  const fill = formatPaint(drawing, 'fill', { paint: fillPaint, alpha: find('fillAlpha') ?? 1 })
  const width = Math.min(find('strokeWidth') ?? 0, vector.maxReach)
  const strokePaint = width > 0 ? await findPathPaint(vector, element, 'strokeColor') : undefined
  const stroke = formatPaint(drawing, 'stroke', { paint: strokePaint, alpha: find('strokeAlpha') ?? 1 })
  for (const paint of [fillPaint, strokePaint]) {
    if (paint !== undefined) drawing.spend('work', (count + vector.clipCount) ** 2)
  }
  const numbers = { 'stroke-width': width, 'stroke-miterlimit': Math.max(find('strokeMiterLimit') ?? 4, 1) }
  const style = [
    ` fill-rule="${findFillRule(drawing, element)}"`,
    ` stroke-linecap="${caps[find('strokeLineCap') ?? 0] ?? 'butt'}"`,
    ` stroke-linejoin="${joins[find('strokeLineJoin') ?? 0] ?? 'miter'}"`,
    formatNumbers(numbers),
  ].join('')
  return `${fill.definition}${stroke.definition}<path d="${data}"${fill.attributes}${stroke.attributes}${style}/>`
}

function findFillRule(drawing: Drawing, element: XmlElement): 'evenodd' | 'nonzero' {
  return findNumberOf(drawing, element, 'fillType') === 1 ? 'evenodd' : 'nonzero'
}

function findPathData({ drawing, maxReach }: Vector, element: XmlElement): PathData {
  const value = resolveValue(drawing.table, findAttribute(element, 'pathData'))
  const path = readPathData(value?.kind === 'text' ? value.text : '')
  if (!(path.reach <= maxReach)) throw malformed('a drawing has a path that leads far out of it')
  return path
}

/** A gradient may stand in the place of the attribute. */
async function findPathPaint(
  { drawing, tint }: Vector,
  element: XmlElement,
  name: 'fillColor' | 'strokeColor',
): Promise<Paint | undefined> {
  const inline = element.children.find((child) => findPlainText(child, 'name') === `android:${name}`)
  const [root] = inline?.children ?? []
  const paint =
    root === undefined ? await findPaint(drawing, findAttribute(element, name)) : await readPaint(drawing, root)
  return tintPaint(paint, tint)
}
