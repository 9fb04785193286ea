import { decodeCgbi } from './decode-cgbi.ts'
import type { PngHeader } from './read-png-header.ts'
import { encodeRgba, reencodeIcon } from './reencode-icon.ts'

/** Images that are decoded before the icon is given up: a broken one may cost as much as a sound one, 0.2 s. */
export const maxIconAttempts = 3

export type IconCandidate = { header: PngHeader; load: () => Promise<Buffer | undefined> }

/** The largest of the images that can be decoded, as a PNG of our own making. */
export async function encodeLargest(
  candidates: IconCandidate[],
  maxAttempts: number = maxIconAttempts,
): Promise<Buffer | undefined> {
  const area = ({ header }: IconCandidate) => header.widthPx * header.heightPx
  const best = candidates.toSorted((left, right) => area(right) - area(left)).slice(0, maxAttempts)
  for (const { header, load } of best) {
    const bytes = await load()
    const icon = bytes && (header.isCgbi ? await reencodeCgbi(bytes) : await reencodeIcon(bytes))
    if (icon !== undefined) return icon
  }
  return undefined
}

async function reencodeCgbi(bytes: Buffer): Promise<Buffer | undefined> {
  const image = decodeCgbi(bytes)
  return image && encodeRgba(image.pixels, image.widthPx, image.heightPx)
}
