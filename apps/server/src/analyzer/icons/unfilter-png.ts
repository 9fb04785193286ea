/** An image of 8 bits per channel. */
export type FilteredImage = { widthPx: number; heightPx: number; channels: 3 | 4; isInterlaced: boolean }

/** The pixels of a pass: the first column and row, and the steps to the next ones. */
type Pass = { column: number; row: number; columnStep: number; rowStep: number }

const single: Pass[] = [{ column: 0, row: 0, columnStep: 1, rowStep: 1 }]

/** Adam7 (PNG specification, section 8.2). */
const interlaced: Pass[] = [
  { column: 0, row: 0, columnStep: 8, rowStep: 8 },
  { column: 4, row: 0, columnStep: 8, rowStep: 8 },
  { column: 0, row: 4, columnStep: 4, rowStep: 8 },
  { column: 2, row: 0, columnStep: 4, rowStep: 4 },
  { column: 0, row: 2, columnStep: 2, rowStep: 4 },
  { column: 1, row: 0, columnStep: 2, rowStep: 2 },
  { column: 0, row: 1, columnStep: 1, rowStep: 2 },
]

/**
 * The samples of an image, row by row. `load` is asked for exactly as many bytes as the image takes with its filters, and has
 * none when it finds another number. undefined: an unknown filter, or no bytes.
 */
export function unfilterPasses(
  image: FilteredImage,
  load: (sizeBytes: number) => Buffer | undefined,
): Buffer | undefined {
  const { widthPx, heightPx, channels, isInterlaced } = image
  const passes = (isInterlaced ? interlaced : single)
    .map((pass) => ({
      ...pass,
      columns: Math.max(0, Math.ceil((widthPx - pass.column) / pass.columnStep)),
      rows: Math.max(0, Math.ceil((heightPx - pass.row) / pass.rowStep)),
    }))
    .filter(({ columns, rows }) => columns > 0 && rows > 0)
  const data = load(passes.reduce((sum, { columns, rows }) => sum + rows * (1 + columns * channels), 0))
  if (data === undefined) return undefined
  const samples = Buffer.alloc(widthPx * heightPx * channels)
  let place = 0
  for (const { columns, rows, column, row, columnStep, rowStep } of passes) {
    const rowBytes = columns * channels
    let above: Buffer = Buffer.alloc(rowBytes)
    for (let index = 0; index < rows; index += 1) {
      const line = data.subarray(place + 1, place + 1 + rowBytes)
      if (!unfilterLine({ line, above, filter: data[place] ?? 0, channels })) return undefined
      const target = ((row + index * rowStep) * widthPx + column) * channels
      if (columnStep === 1) line.copy(samples, target)
      else spreadLine(line, samples, { target, step: columnStep * channels, channels })
      above = line
      place += 1 + rowBytes
    }
  }
  return samples
}

function spreadLine(
  line: Buffer,
  samples: Buffer,
  { target, step, channels }: { target: number; step: number; channels: number },
): void {
  for (let from = 0, to = target; from < line.length; from += channels, to += step) {
    for (let channel = 0; channel < channels; channel += 1) samples[to + channel] = line[from + channel] ?? 0
  }
}

/** In place. false: a filter that the format does not have. A loop for each: 2048 rows of 2048 pixels take 0.1 s. */
function unfilterLine({
  line,
  above,
  filter,
  channels,
}: {
  line: Buffer
  above: Buffer
  filter: number
  channels: number
}): boolean {
  switch (filter) {
    case 0:
      return true
    case 1:
      for (let index = channels; index < line.length; index += 1) {
        line[index] = (line[index] ?? 0) + (line[index - channels] ?? 0)
      }
      return true
    case 2:
      for (let index = 0; index < line.length; index += 1) line[index] = (line[index] ?? 0) + (above[index] ?? 0)
      return true
    case 3:
      for (let index = 0; index < line.length; index += 1) {
        const left = index < channels ? 0 : (line[index - channels] ?? 0)
        line[index] = (line[index] ?? 0) + ((left + (above[index] ?? 0)) >> 1)
      }
      return true
    case 4:
      for (let index = 0; index < line.length; index += 1) {
        const left = index < channels ? 0 : (line[index - channels] ?? 0)
        const corner = index < channels ? 0 : (above[index - channels] ?? 0)
        line[index] = (line[index] ?? 0) + predictPaeth(left, above[index] ?? 0, corner)
      }
      return true
    default:
      return false
  }
}

/** The neighbour that is closest to what the three of them suggest (PNG specification, section 9.4). */
function predictPaeth(left: number, up: number, corner: number): number {
  const guess = left + up - corner
  const toLeft = Math.abs(guess - left)
  const toUp = Math.abs(guess - up)
  const toCorner = Math.abs(guess - corner)
  if (toLeft <= toUp && toLeft <= toCorner) return left
  return toUp <= toCorner ? up : corner
}
