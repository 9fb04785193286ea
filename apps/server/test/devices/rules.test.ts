import type { ReleasePlatform } from '@godwit/contract'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  chooseOffers,
  isOffered,
  keyOfPlace,
  listRolledBackNumbers,
  type Patch,
  type Place,
} from '../../src/devices/rules.ts'

const platforms: ReleasePlatform[] = ['android', 'ios']
const archs = ['aarch64', 'x86_64']
const channels = ['stable', 'beta']

const places: Place[] = channels.flatMap((channel) =>
  platforms.flatMap((platform) => archs.map((arch) => ({ channel, platform, arch }))),
)

const artifact = fc.record({
  platform: fc.constantFrom(...platforms),
  arch: fc.constantFrom(...archs),
  hash: fc.constant('h'),
  hash_signature: fc.constant(null),
  blob_key: fc.uuid(),
  is_uploaded: fc.boolean(),
})

/** Patches of one release in any order, each number once. */
const patches: fc.Arbitrary<Patch[]> = fc.uniqueArray(
  fc.record({
    number: fc.integer({ min: 1, max: 12 }),
    channel: fc.option(fc.constantFrom(...channels)),
    is_rolled_back: fc.boolean(),
    artifacts: fc.uniqueArray(artifact, { selector: ({ platform, arch }) => `${platform} ${arch}`, maxLength: 4 }),
  }),
  { selector: ({ number }) => number, maxLength: 12 },
)

/** The rule as one would say it aloud, without any thought of speed. */
function chooseNaively(all: Patch[], place: Place): number | undefined {
  return all
    .filter((patch) => patch.channel === place.channel)
    .filter((patch) => !patch.is_rolled_back)
    .filter((patch) =>
      patch.artifacts.some(
        ({ platform, arch, is_uploaded }) => platform === place.platform && arch === place.arch && is_uploaded,
      ),
    )
    .map((patch) => patch.number)
    .toSorted((a, b) => b - a)[0]
}

describe('the patch that a device is offered', () => {
  it('is the highest on its channel, not rolled back, that has the bytes for its platform and arch', () => {
    fc.assert(
      fc.property(patches, (all) => {
        const offers = chooseOffers(all)
        for (const place of places) expect(offers.get(keyOfPlace(place))?.number).toBe(chooseNaively(all, place))
      }),
    )
  })

  it('comes with the artifact of that patch for that place', () => {
    fc.assert(
      fc.property(patches, (all) => {
        for (const [key, { number, artifact: offered }] of chooseOffers(all)) {
          const patch = all.find((candidate) => candidate.number === number)
          expect(patch?.artifacts).toContain(offered)
          expect(key).toBe(keyOfPlace({ channel: patch?.channel ?? '', ...offered }))
        }
      }),
    )
  })

  it('is never among those that devices must uninstall, which are all that are rolled back', () => {
    fc.assert(
      fc.property(patches, (all) => {
        const rolledBack = listRolledBackNumbers(all)
        const expected = all.filter((patch) => patch.is_rolled_back).map((patch) => patch.number)
        expect(rolledBack).toEqual(expected.toSorted((a, b) => a - b))
        for (const { number } of chooseOffers(all).values()) expect(rolledBack).not.toContain(number)
      }),
    )
  })

  it.each([
    [2, undefined, true],
    [2, null, true],
    [2, 1, true],
    [2, 2, false],
    [2, 3, false],
    [1, 0, true],
  ])('with number %s, to an old updater that runs %s, is offered: %s', (offered, running, expected) => {
    expect(isOffered(offered, running)).toBe(expected)
  })
})
