import { ActivityImportLine } from '@godwit/contract'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { maxLineChars, readImportLine } from '../../src/activity/store/import-lines.ts'

const nowMs = Date.parse('2026-11-21T12:00:00Z')
const valid = {
  client_id: '0d9f3c1e-8a4b-4c6d-9e2f-1a2b3c4d5e6f',
  platform: 'android',
  arch: 'aarch64',
  release_version: '1.2.0+3',
  patch_number: 2,
  time: '2026-10-01T08:30:00Z',
}
const read = (line: unknown) => readImportLine(JSON.stringify(line), nowMs)

const strangeText = fc.constantFrom('', 'a\0b', '\ud800', 'x'.repeat(256), 'x'.repeat(257), 'é', ' ')
const anyValue = fc.oneof(strangeText, fc.constantFrom(null, undefined, 0, -1, 1.5, 2 ** 53, true, [], {}), fc.string())
const times = fc.oneof(
  fc
    .date({ min: new Date('1969-01-01'), max: new Date('2026-11-22'), noInvalidDate: true })
    .map((date) => date.toISOString()),
  fc.constantFrom(
    '2026-10-01T08:30:00.5Z',
    '2026-10-01T08:30:00.123456Z',
    '2026-10-01T10:30:00+02:00',
    '2026-10-01T08:30Z',
    '2026-10-01',
    '2026-10-01T08:30:00',
    '2026-02-28T23:59:59Z',
    '2024-02-29T00:00:00Z',
    '2026-02-29T00:00:00Z',
    '2026-01-31T00:00:00.000Z',
    '2026-13-01T00:00:00Z',
    '2026-10-01T24:00:00Z',
    '2026-10-01T08:60:00Z',
    '1970-01-01T00:00:00Z',
    '2026x10-01T08:30:00Z',
    '20a6-10-01T08:30:00Z',
    1_790_000_000,
  ),
)
const lines = fc.record(
  {
    client_id: fc.oneof(fc.uuid(), anyValue),
    platform: fc.oneof(fc.constantFrom('android', 'ios', 'macos'), anyValue),
    arch: fc.oneof(fc.constant('aarch64'), anyValue),
    release_version: fc.oneof(fc.constant('1.0.0+1'), anyValue),
    patch_number: fc.oneof(fc.nat(), anyValue),
    time: times,
    more: anyValue,
  },
  { requiredKeys: [] },
)

describe('a line of an import', () => {
  it('is read', () => {
    expect(read(valid)).toEqual({
      clientId: valid.client_id,
      platform: 'android',
      arch: 'aarch64',
      releaseVersion: '1.2.0+3',
      patch: 2,
      timeMs: Date.parse(valid.time),
    })
  })

  it('is taken or refused as the contract says, and read as JavaScript reads it', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          lines,
          lines.map((line) => ({ ...valid, ...line })),
        ),
        (line) => {
          const result = read(line)
          const parsed = ActivityImportLine.safeParse(JSON.parse(JSON.stringify(line)))
          const timeMs = parsed.success ? Date.parse(parsed.data.time) : Number.NaN
          if (!parsed.success || !(timeMs > 0) || timeMs > nowMs + 86_400_000) {
            expect(typeof result).toBe('string')
            return
          }
          const { client_id, platform, arch, release_version, patch_number } = parsed.data
          expect(result).toEqual({
            clientId: client_id,
            platform,
            arch,
            releaseVersion: release_version ? release_version : null,
            patch: patch_number ?? 0,
            timeMs,
          })
        },
      ),
      { numRuns: 3000 },
    )
  })

  it.each([
    [{ ...valid, platform: 'symbian' }, /^platform: /],
    [{ ...valid, client_id: '' }, /^client_id: /],
    [{ ...valid, client_id: undefined }, /^client_id: /],
    [{ ...valid, patch_number: -1 }, /^patch_number: /],
    [{ ...valid, time: 'yesterday' }, /^time: /],
    [{ ...valid, time: '2026-11-23T00:00:00Z' }, /^time: is more than a day in the future/],
    [[], /./],
    ['x'.repeat(maxLineChars), /longer than/],
  ])('names what is wrong with %j', (line, reason) => {
    expect(read(line)).toMatch(reason)
  })

  it('that is no JSON says so', () => {
    expect(readImportLine('{"client_id":', nowMs)).toBe('is not JSON')
  })
})
