import type { ReleasePlatform } from '@godwit/contract'

export type PatchArtifact = {
  platform: ReleasePlatform
  arch: string
  hash: string
  hash_signature: string | null
  blob_key: string
  is_uploaded: boolean
}

/** A patch of one release, as far as devices are concerned. */
export type Patch = { number: number; channel: string | null; is_rolled_back: boolean; artifacts: PatchArtifact[] }

/** Where a device of the release stands. */
export type Place = { channel: string; platform: ReleasePlatform; arch: string }

export type Offer = { number: number; artifact: PatchArtifact }

/** One key per place: NUL cannot occur in a channel or an arch. */
export function keyOfPlace(place: Place): string {
  return `${place.channel}\0${place.platform}\0${place.arch}`
}

/**
 * What devices of the release are offered, for every place that is offered anything: the highest number on the channel
 * that has its bytes for the platform and arch. Not simply the highest number: `--platforms=android,ios` makes two
 * patches, each with artifacts of one platform.
 */
export function chooseOffers(patches: Patch[]): Map<string, Offer> {
  const offers = new Map<string, Offer>()
  for (const { number, channel, is_rolled_back, artifacts } of patches) {
    if (channel === null || is_rolled_back) continue
    for (const artifact of artifacts) {
      if (!artifact.is_uploaded) continue
      const key = keyOfPlace({ channel, platform: artifact.platform, arch: artifact.arch })
      const best = offers.get(key)
      if (best === undefined || number > best.number) offers.set(key, { number, artifact })
    }
  }
  return offers
}

/** Ascending, whatever the channel or platform. Never a number that is offered: rolled back patches are not. */
export function listRolledBackNumbers(patches: Patch[]): number[] {
  return patches
    .filter((patch) => patch.is_rolled_back)
    .map((patch) => patch.number)
    .sort((a, b) => a - b)
}

/** `runningNumber` is the `patch_number` of old updaters: they install whatever is offered, so only a higher number may be. */
export function isOffered(offeredNumber: number, runningNumber: number | null | undefined): boolean {
  return runningNumber === null || runningNumber === undefined || offeredNumber > runningNumber
}
