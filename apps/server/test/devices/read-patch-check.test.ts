import { PatchCheckRequest } from '@godwit/contract'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readPatchCheck } from '../../src/devices/read-patch-check.ts'

const fields = Object.keys(PatchCheckRequest.shape) as (keyof PatchCheckRequest)[]

const text = fc.oneof(
  fc.string({ maxLength: 5 }),
  fc.string({ unit: 'binary', maxLength: 5 }),
  fc.constantFrom('', 'stable', 'a\0b', '\ud800', 'é', 'x'.repeat(300)),
)
const oddity = fc.oneof(fc.constantFrom(null, undefined, true, -1, 1.5, 3, 2 ** 60), text, fc.array(text), fc.object())

/** Good bodies, bodies of which one or two fields are odd, and anything at all. */
const body = fc.oneof(
  fc
    .tuple(
      fc.record({
        app_id: text,
        channel: text,
        release_version: text,
        platform: fc.constantFrom('android', 'ios', 'linux', 'macos', 'windows'),
        arch: text,
        client_id: fc.option(text, { nil: undefined }),
      }),
      fc.dictionary(fc.constantFrom(...fields, 'something_new', '__proto__'), oddity, { maxKeys: 2 }),
    )
    .map(([good, odd]) => ({ ...good, ...odd })),
  fc.jsonValue(),
)

function read(value: unknown) {
  try {
    const check = readPatchCheck(value)
    return Object.fromEntries(fields.map((field) => [field, check[field]]))
  } catch (error) {
    return error
  }
}

describe('reading a check', () => {
  it('takes and refuses exactly what the schema takes and refuses', () => {
    fc.assert(
      fc.property(body, (sent) => {
        const value: unknown = JSON.parse(JSON.stringify(sent))
        const expected = PatchCheckRequest.safeParse(value)
        if (!expected.success) expect(read(value)).toMatchObject({ code: 'invalid_request' })
        else expect(read(value)).toEqual(Object.fromEntries(fields.map((field) => [field, expected.data[field]])))
      }),
      { numRuns: 2000 },
    )
  })
})
