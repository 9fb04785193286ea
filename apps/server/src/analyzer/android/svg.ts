import { malformed } from './refusals.ts'

// All SVG is put together of what these functions give: no text of an archive gets into it as it is.

export type Box = { x: number; y: number; width: number; height: number }

/** Larger coordinates are of no use, and slow to draw. */
const maxCoordinate = 1e5

export function formatNumber(value: number): string {
  if (!(Math.abs(value) <= maxCoordinate)) throw malformed('a drawing has a number out of range')
  return String(Math.round(value * 1e4) / 1e4)
}

/** Named attributes with numbers for values. */
export function formatNumbers(values: Record<string, number>): string {
  return Object.entries(values)
    .map(([name, value]) => ` ${name}="${formatNumber(value)}"`)
    .join('')
}

export function formatBox({ x, y, width, height }: Box): string {
  return formatNumbers({ x, y, width, height })
}

/** A color with its opacity, as attributes `fill` and `fill-opacity` or such. */
export function formatColor(name: 'fill' | 'stroke' | 'stop', argb: number, alpha: number): string {
  const color = (argb & 0xffffff).toString(16).padStart(6, '0')
  const opacity = ((argb >>> 24) / 255) * Math.min(Math.max(alpha, 0), 1)
  const attribute = name === 'stop' ? 'stop-color' : name
  return ` ${attribute}="#${color}"${formatNumbers({ [`${name}-opacity`]: opacity })}`
}

export type PathData = {
  data: string
  /** How many numbers are in it. */
  count: number
  /** The largest of them. */
  reach: number
}

const maxPathChars = 64 * 1024
/** Android took the language of its paths from SVG. */
const pathPattern = /^[MmLlHhVvCcSsQqTtAaZzEe\d+\-.,\s]*$/
const numberPattern = /(?:\d+\.?\d*|\.\d+)(?:[Ee][+-]?\d+)?/g

export function readPathData(text: string): PathData {
  if (text.length > maxPathChars || !pathPattern.test(text)) throw malformed('a drawing has a path that is none')
  let count = 0
  let reach = 0
  for (const [number] of text.matchAll(numberPattern)) {
    count += 1
    reach = Math.max(reach, Number(number))
  }
  return { data: text.replaceAll(/\s/g, ' '), count, reach }
}
