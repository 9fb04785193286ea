import { type Drawing, findLengthOf, findNumberOf } from './drawing.ts'
import { averageColor, findPaint, formatPaint, type Paint, readStops, type Stop } from './paints.ts'
import { type Box, formatBox, formatNumbers } from './svg.ts'
import { findAttribute, type XmlElement } from './xml.ts'

const shapes = ['rectangle', 'oval'] as const

/** A GradientDrawable as SVG: a rectangle or an oval, without its line. undefined for other shapes. */
export async function drawShape(drawing: Drawing, root: XmlElement, box: Box): Promise<string | undefined> {
  const shape = shapes[findNumberOf(drawing, root, 'shape') ?? 0]
  const paint = await findShapePaint(drawing, root, box)
  if (shape === undefined) return undefined
  const { definition, attributes } = formatPaint(drawing, 'fill', { paint, alpha: 1 })
  if (shape === 'oval') return `${definition}<ellipse${formatNumbers(findEllipse(box))}${attributes}/>`
  const corners = findPart(root, 'corners')
  const radius = (corners && findLengthOf(drawing, corners, { name: 'radius', whole: 0 })) ?? 0
  return `${definition}<rect${formatBox(box)}${formatNumbers({ rx: Math.max(radius, 0) })}${attributes}/>`
}

function findPart(root: XmlElement, name: string): XmlElement | undefined {
  return root.children.find((child) => child.name === name)
}

function findEllipse({ x, y, width, height }: Box): Record<string, number> {
  return { cx: x + width / 2, cy: y + height / 2, rx: width / 2, ry: height / 2 }
}

async function findShapePaint(drawing: Drawing, root: XmlElement, box: Box): Promise<Paint | undefined> {
  const gradient = findPart(root, 'gradient')
  if (gradient === undefined) {
    const solid = findPart(root, 'solid')
    return solid && findPaint(drawing, findAttribute(solid, 'color'))
  }
  const stops = await readStops(drawing, gradient)
  if (stops.length === 0) return undefined
  const type = findNumberOf(drawing, gradient, 'type') ?? 0
  if (type === 0) return createLinear(stops, findNumberOf(drawing, gradient, 'angle') ?? 0, box)
  const r = findLengthOf(drawing, gradient, { name: 'gradientRadius', whole: Math.min(box.width, box.height) })
  if (type !== 1 || r === undefined) return { kind: 'color', argb: averageColor(stops) }
  const cx = box.x + box.width * (findNumberOf(drawing, gradient, 'centerX') ?? 0.5)
  const cy = box.y + box.height * (findNumberOf(drawing, gradient, 'centerY') ?? 0.5)
  return { kind: 'gradient', gradient: { type: 'radial', place: { cx, cy, r }, stops, spread: 'pad' } }
}

/** From corner to corner or from side to side: angles are multiples of 45 degrees, counter-clockwise from the left. */
function createLinear(stops: Stop[], angle: number, { x, y, width, height }: Box): Paint {
  const turn = (angle * Math.PI) / 180
  const [right, down] = [Math.round(Math.cos(turn)), -Math.round(Math.sin(turn))]
  const [cx, cy] = [x + width / 2, y + height / 2]
  const [dx, dy] = [(right * width) / 2, (down * height) / 2]
  const place = { x1: cx - dx, y1: cy - dy, x2: cx + dx, y2: cy + dy }
  return { kind: 'gradient', gradient: { type: 'linear', place, stops, spread: 'pad' } }
}
