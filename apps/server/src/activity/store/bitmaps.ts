import { RoaringBitmap32 } from 'roaring-wasm'

export { RoaringBitmap32 }
export type Bitmap = RoaringBitmap32

/**
 * The library writes numbers in blocks of 983,040 through a view of its memory, which is void after a block that makes the
 * memory grow: one block at a time.
 */
const block = 900_000

/** `sorted` ascending. Bitmaps live in the memory of WebAssembly: whoever makes one disposes of it. */
export function addSorted(bitmap: Bitmap, sorted: Uint32Array): void {
  for (let from = 0; from < sorted.length; from += block) bitmap.addMany(sorted.subarray(from, from + block))
}

export function createBitmap(sorted: Uint32Array): Bitmap {
  const bitmap = new RoaringBitmap32()
  addSorted(bitmap, sorted)
  return bitmap
}

/** Portable format (RoaringFormatSpec): what pg_roaringbitmap, ClickHouse and Spark read. */
export function serializeBitmap(bitmap: Bitmap): Buffer {
  const bytes = bitmap.serialize('portable')
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

export function readBitmap(bytes: Uint8Array): Bitmap {
  return RoaringBitmap32.deserialize(bytes, 'portable')
}

export function serializeSorted(sorted: Uint32Array): Buffer {
  const bitmap = createBitmap(sorted)
  try {
    return serializeBitmap(bitmap)
  } finally {
    bitmap.dispose()
  }
}

export function sizeOfUnion(bitmaps: Bitmap[]): number {
  const [first, ...others] = bitmaps
  if (first === undefined) return 0
  if (others.length === 0) return first.size
  const union = RoaringBitmap32.orMany(bitmaps)
  try {
    return union.size
  } finally {
    union.dispose()
  }
}
