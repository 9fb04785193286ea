import sharp from 'sharp'
import { encode, isImage, reencodeIcon, sharpOptions } from '../icons/reencode-icon.ts'
import { limits } from '../limits.ts'
import { loadOptional, readOptional } from '../optional.ts'
import { drawContent, drawElement } from './draw-drawable.ts'
import { createDrawing, type Drawing, findNumberOf, type IconSource } from './drawing.ts'
import { resolveAll } from './resolve.ts'
import type { Box } from './svg.ts'
import type { ResourceValue } from './values.ts'
import type { XmlElement } from './xml.ts'

/** An adaptive icon has 108 by 108 dp, of which at most the 72 by 72 in the middle are seen. */
const layerPx = 432
const seenPx = 288
const scale = 4

/** What can be told of an image by its start. */
const startBytes = 64

/** The best image that can be read, else the best drawing, as a PNG. Never fails for a bad icon. */
export async function findIcon(source: IconSource, values: ResourceValue[]): Promise<Buffer | undefined> {
  const tried = new Set<string>()
  for (const value of values) {
    const drawings: string[] = []
    for (const path of findPaths(source, value)) {
      if (tried.has(path) || tried.size === limits.iconCandidates) continue
      tried.add(path)
      const found = await readImage(source, path)
      if (found === 'drawing') drawings.push(path)
      else if (found !== undefined) return found
    }
    for (const path of drawings) {
      const found = await loadOptional(() => drawIcon(source, path))
      if (found !== undefined) return found
    }
  }
  return undefined
}

function findPaths(source: IconSource, value: ResourceValue): string[] {
  const found = readOptional(() => resolveAll(source.table, value)) ?? []
  return found.flatMap((each) => (each.value.kind === 'text' ? [each.value.text] : []))
}

function readImage({ archive, folder }: IconSource, path: string): Promise<Buffer | 'drawing' | undefined> {
  return loadOptional(async () => {
    const entry = archive.entries.get(folder + path)
    if (entry === undefined) return undefined
    if (!isImage(await archive.readStart(entry, startBytes))) return 'drawing'
    return reencodeIcon(await archive.read(entry, limits.iconBytes))
  })
}

async function drawIcon(source: IconSource, path: string): Promise<Buffer | undefined> {
  const drawing = createDrawing(source, scale)
  const svg = await drawing.withXml(path, await drawing.readFile(path), (root) =>
    root.name === 'adaptive-icon' ? drawAdaptive(drawing, root) : drawPlain(drawing, root),
  )
  return svg === undefined ? undefined : encode(sharp(Buffer.from(svg), sharpOptions))
}

async function drawAdaptive(drawing: Drawing, root: XmlElement): Promise<string | undefined> {
  const box = { x: 0, y: 0, width: layerPx, height: layerPx }
  let svg = ''
  for (const name of ['background', 'foreground']) {
    const layer = root.children.find((child) => child.name === name)
    if (layer !== undefined) svg += await drawContent(drawing, layer, box)
  }
  const edge = (layerPx - seenPx) / 2
  return svg === '' ? undefined : createDocument(svg, { x: edge, y: edge, width: seenPx, height: seenPx })
}

/** A vector keeps its proportions, other drawables have none. */
async function drawPlain(drawing: Drawing, root: XmlElement): Promise<string> {
  const [width, height] = [findNumberOf(drawing, root, 'width') ?? 1, findNumberOf(drawing, root, 'height') ?? 1]
  const longest = Math.max(width, height)
  const isSize = width > 0 && height > 0 && longest / Math.min(width, height) <= seenPx
  const factor = isSize ? seenPx / longest : 0
  const size = isSize
    ? { width: Math.round(width * factor), height: Math.round(height * factor) }
    : { width: seenPx, height: seenPx }
  const box = { x: 0, y: 0, ...size }
  return createDocument(await drawElement(drawing, root, box), box)
}

function createDocument(content: string, { x, y, width, height }: Box): string {
  const view = `viewBox="${x} ${y} ${width} ${height}"`
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" ${view}>${content}</svg>`
}
