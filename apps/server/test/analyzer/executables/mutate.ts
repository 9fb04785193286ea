import fc from 'fast-check'

/** Damage of every kind to real bytes: some of them changed, extreme numbers put in, an end cut off. */
export function mutate(bytes: Buffer): fc.Arbitrary<Buffer> {
  const place = fc.nat(Math.max(0, bytes.length - 1))
  const number = fc.constantFrom(0, 1, 0x7f, 0xff, 0x7fffffff, 0x80000000, 0xffffffff)
  const change = fc.oneof(
    fc.record({ at: place, put: fc.uint8Array({ minLength: 1, maxLength: 4 }) }),
    fc.record({ at: place, put: number.map(toBytes) }),
  )
  return fc
    .record({ changes: fc.array(change, { minLength: 1, maxLength: 6 }), end: fc.option(place, { freq: 4 }) })
    .map(({ changes, end }) => {
      const copy = Buffer.from(bytes)
      for (const { at, put } of changes) copy.set(put.subarray(0, copy.length - at), at)
      return end === null ? copy : copy.subarray(0, end)
    })
}

function toBytes(value: number): Uint8Array {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}
