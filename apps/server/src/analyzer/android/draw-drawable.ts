import { UnanalyzableError } from '../app-facts.ts'
import { isImage, openImage } from '../icons/reencode-icon.ts'
import { limits } from '../limits.ts'
import { drawShape } from './draw-shape.ts'
import { drawVector } from './draw-vector.ts'
import { type Drawing, findLengthOf, findNumberOf } from './drawing.ts'
import { findPaint } from './paints.ts'
import { malformed } from './refusals.ts'
import { readDensity, resolveAll } from './resolve.ts'
import { type Box, formatBox, formatColor } from './svg.ts'
import type { ConfiguredValue, ResourceValue } from './values.ts'
import { type AttributeName, findAttribute, type XmlElement } from './xml.ts'

/** How an image lies in its box: stretched, or in the middle with the size that it has. */
type Fit = 'fill' | 'center'

/** The first of what a value leads to that can be drawn, as SVG. */
export async function drawValue(drawing: Drawing, value: ResourceValue, box: Box, fit: Fit = 'fill'): Promise<string> {
  for (const candidate of resolveAll(drawing.table, value).slice(0, limits.iconCandidates)) {
    try {
      return await drawCandidate(drawing, candidate, { box, fit })
    } catch (error) {
      const isBad = error instanceof UnanalyzableError && error.problem === 'malformed_content'
      if (!isBad) throw error
    }
  }
  throw malformed('a drawing has a part that cannot be drawn')
}

async function drawCandidate(
  drawing: Drawing,
  { configuration, value }: ConfiguredValue,
  { box, fit }: { box: Box; fit: Fit },
): Promise<string> {
  if (value.kind === 'color') return drawColor(value.argb, box)
  if (value.kind !== 'text') throw malformed('a drawing has a part that is no drawing')
  const file = await drawing.readFile(value.text)
  if (isImage(file)) return drawImage(drawing, file, { box, fit, density: readDensity(configuration.density) })
  return drawing.withXml(value.text, file, (root) => drawElement(drawing, root, box))
}

function drawColor(argb: number, box: Box): string {
  return `<rect${formatBox(box)}${formatColor('fill', argb, 1)}/>`
}

/** As large as a layer is drawn. */
const maxImagePx = 432

/** Embeds it as a PNG of our own making, in the size in which it is drawn. */
async function drawImage(
  drawing: Drawing,
  file: Buffer,
  { box, fit, density }: { box: Box; fit: Fit; density: number },
): Promise<string> {
  drawing.spend('images', 1)
  const image = await openImage(file)
  if (image === undefined) throw malformed('a drawing has an image that cannot be decoded')
  const place = fit === 'fill' ? box : centerBox(box, await measureImage(drawing, image, density))
  const pixels = (length: number) => Math.min(Math.max(Math.round(length), 1), maxImagePx)
  try {
    const size = { width: pixels(place.width), height: pixels(place.height), fit: 'fill' } as const
    const png = await image.resize(size).png().toBuffer()
    return `<image${formatBox(place)} preserveAspectRatio="none" href="data:image/png;base64,${png.toString('base64')}"/>`
  } catch {
    throw malformed('a drawing has an image that cannot be decoded')
  }
}

type Size = { width: number; height: number }

async function measureImage(
  { scale }: Drawing,
  image: NonNullable<Awaited<ReturnType<typeof openImage>>>,
  density: number,
): Promise<Size> {
  const { width, height } = await image.metadata()
  const factor = (scale * 160) / (density || 160)
  return { width: width * factor, height: height * factor }
}

function centerBox(box: Box, { width, height }: Size): Box {
  return { x: box.x + (box.width - width) / 2, y: box.y + (box.height - height) / 2, width, height }
}

/** Parts may be larger than the icon, and are cut off. */
const maxBoxPx = 2048

/** What an XML file of a drawable has as its root, or another drawable within. */
export async function drawElement(drawing: Drawing, element: XmlElement, box: Box): Promise<string> {
  if (!(Math.max(box.width, box.height) <= maxBoxPx)) throw malformed('a drawing has a part that is too large')
  switch (element.name) {
    case 'vector':
      return drawVector(drawing, element, box)
    case 'shape':
      return (await drawShape(drawing, element, box)) ?? refuse()
    case 'color': {
      const paint = await findPaint(drawing, findAttribute(element, 'color'))
      return paint?.kind === 'color' ? drawColor(paint.argb, box) : refuse()
    }
    case 'bitmap': {
      const source = findAttribute(element, 'src') ?? refuse()
      return drawValue(drawing, source, box, findFit(drawing, element))
    }
    case 'inset':
      return drawContent(drawing, element, insetBox(drawing, element, box))
    case 'layer-list':
      return drawLayers(drawing, element, box)
    case 'animated-vector':
      return drawContent(drawing, element, box)
    case 'selector':
      // The last one is for the state in which an icon is: none in particular.
      return drawContent(drawing, element.children.findLast(({ name }) => name === 'item') ?? refuse(), box)
    default:
      return refuse()
  }
}

function refuse(): never {
  throw malformed('a drawing has a part of an unknown kind')
}

/** A drawable by reference, or the one that stands in an element. */
export function drawContent(drawing: Drawing, element: XmlElement, box: Box): Promise<string> {
  const reference = findAttribute(element, 'drawable')
  if (reference !== undefined) return drawValue(drawing, reference, box)
  const [child] = element.children
  return child === undefined ? refuse() : drawElement(drawing, child, box)
}

const gravityFill = 0x77

/** Those that pull to a side are taken for the middle. */
function findFit(drawing: Drawing, element: XmlElement): Fit {
  const gravity = findNumberOf(drawing, element, 'gravity') ?? gravityFill
  return (gravity & gravityFill) === gravityFill ? 'fill' : 'center'
}

function insetBox(drawing: Drawing, element: XmlElement, box: Box): Box {
  const find = (name: AttributeName, whole: number) =>
    findLengthOf(drawing, element, { name, whole }) ?? findLengthOf(drawing, element, { name: 'inset', whole }) ?? 0
  return shrinkBox(box, {
    left: find('insetLeft', box.width),
    top: find('insetTop', box.height),
    right: find('insetRight', box.width),
    bottom: find('insetBottom', box.height),
  })
}

function shrinkBox(box: Box, by: { left: number; top: number; right: number; bottom: number }): Box {
  const width = box.width - by.left - by.right
  const height = box.height - by.top - by.bottom
  if (!(width > 0 && height > 0)) throw malformed('a drawing has a part without a size')
  return { x: box.x + by.left, y: box.y + by.top, width, height }
}

async function drawLayers(drawing: Drawing, list: XmlElement, box: Box): Promise<string> {
  let svg = ''
  for (const item of list.children) {
    if (item.name !== 'item') continue
    const find = (name: AttributeName) => findLengthOf(drawing, item, { name, whole: 0 }) ?? 0
    const inner = shrinkBox(box, {
      left: find('left'),
      top: find('top'),
      right: find('right'),
      bottom: find('bottom'),
    })
    const [width, height] = [find('width') || inner.width, find('height') || inner.height]
    svg += await drawContent(drawing, item, centerBox(inner, { width, height }))
  }
  return svg
}
