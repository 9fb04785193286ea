import type { Archive } from '../archive.ts'
import { limits } from '../limits.ts'
import { beyondLimit, malformed } from './refusals.ts'
import { resolveValue } from './resolve.ts'
import { withSystemColors } from './system-colors.ts'
import type { ResourceTable, ResourceValue } from './values.ts'
import { type AttributeName, findAttribute, type XmlElement } from './xml.ts'

/** Where an icon comes from. */
export type IconSource = {
  archive: Archive
  table: ResourceTable
  /** What stands before the paths of the table. */
  folder: string
  readXml: (file: Buffer) => XmlElement
}

/**
 * What drawing one icon may take; real ones take a fraction. `work` is the square of what a path and those that clip it have
 * of numbers: lines that all cross each other take the renderer so long, 12 million up to a second.
 */
const budget = { elements: 4000, files: 256, images: 8, gradients: 128, clips: 64, work: 12e6 }

/** One icon while it is drawn. */
export type Drawing = IconSource & {
  /** Density-independent pixels are this wide in the drawing. */
  scale: number
  /** Throws when there was too much of it. */
  spend: (kind: keyof typeof budget, amount: number) => void
  /** For what is defined in the SVG to be referred to. */
  createId: () => string
  readFile: (path: string) => Promise<Buffer>
  /** The root of an XML file, while it is drawn: throws for a file that contains itself. */
  withXml: <T>(path: string, file: Buffer, draw: (root: XmlElement) => Promise<T>) => Promise<T>
}

export function createDrawing(source: IconSource, scale: number): Drawing {
  const left = { ...budget }
  const open = new Set<string>()
  let lastId = 0
  const spend: Drawing['spend'] = (kind, amount) => {
    left[kind] -= amount
    if (left[kind] < 0) throw beyondLimit('an icon takes too much to draw')
  }
  return {
    ...source,
    table: withSystemColors(source.table),
    scale,
    spend,
    createId: () => {
      lastId += 1
      return `d${lastId}`
    },
    readFile: async (path) => {
      spend('files', 1)
      const entry = source.archive.entries.get(source.folder + path)
      if (entry === undefined) throw malformed('a drawing refers to a file that is not there')
      return source.archive.read(entry, limits.iconBytes)
    },
    withXml: async (path, file, draw) => {
      if (open.has(path)) throw malformed('a drawing contains itself')
      const root = source.readXml(file)
      spend('elements', countElements(root))
      open.add(path)
      try {
        return await draw(root)
      } finally {
        open.delete(path)
      }
    },
  }
}

function countElements(element: XmlElement): number {
  return element.children.reduce((sum, child) => sum + countElements(child), 1)
}

/** undefined: it has none, or one that refers to a theme, which is not known here. */
export function findNumberOf(drawing: Drawing, element: XmlElement, name: AttributeName): number | undefined {
  const value = resolveValue(drawing.table, findAttribute(element, name))
  if (value?.kind === 'number') return value.number
  if (value?.kind === 'dimension') return value.dp
  return value?.kind === 'fraction' ? value.fraction : undefined
}

/** A length in the drawing: a share of `whole`, or density-independent pixels. */
export function findLengthOf(
  drawing: Drawing,
  element: XmlElement,
  { name, whole }: { name: AttributeName; whole: number },
): number | undefined {
  return measureLength(drawing, resolveValue(drawing.table, findAttribute(element, name)), whole)
}

function measureLength(drawing: Drawing, value: ResourceValue | undefined, whole: number): number | undefined {
  if (value?.kind === 'fraction') return value.fraction * whole
  return value?.kind === 'dimension' ? value.dp * drawing.scale : undefined
}
