import type { PatchCheckRequest, PatchCheckResponse } from '@godwit/contract'
import type { DeviceApp } from './queries.ts'
import { chooseOffers, isOffered, keyOfPlace, listRolledBackNumbers, type Offer, type Patch } from './rules.ts'

/** What a map entry and its strings cost beside their text (bytes, measured as 113). */
const entryBytes = 120

/** Made once for all checks that it answers. */
export type Answer = {
  /** A PatchCheckResponse as JSON in ASCII. */
  text: string
  /** The numbers of the release that devices are told to uninstall. undefined: there is no such app. */
  rolledBack: readonly number[] | undefined
}

type ReleaseAnswers = {
  rolledBack: readonly number[]
  /** To whoever is offered nothing. */
  nothing: Answer
  offers: Map<string, { number: number; answer: Answer }>
}

/** The answers to every check of one app at one version. */
export type AppAnswers = { version: number; releases: Map<string, ReleaseAnswers>; sizeBytes: number }

const noNumbers: readonly number[] = Object.freeze([])
const nothing = encode({ patch_available: false })
const ofUnknownRelease: Answer = { text: nothing, rolledBack: noNumbers }
const ofUnknownApp: Answer = { text: nothing, rolledBack: undefined }

export function buildAppAnswers(app: DeviceApp, signDownload: (blobKey: string) => string): AppAnswers {
  const releases = new Map<string, ReleaseAnswers>()
  let sizeBytes = entryBytes
  for (const { version, patches } of app.releases) {
    const answers = buildReleaseAnswers(patches, signDownload)
    releases.set(version, answers)
    sizeBytes += entryBytes + version.length * 2 + answers.nothing.text.length + answers.rolledBack.length * 8
    for (const [key, { answer }] of answers.offers) sizeBytes += entryBytes + key.length * 2 + answer.text.length
  }
  return { version: app.device_version, releases, sizeBytes }
}

function buildReleaseAnswers(patches: Patch[], signDownload: (blobKey: string) => string): ReleaseAnswers {
  const numbers = listRolledBackNumbers(patches)
  const rolledBack = numbers.length === 0 ? noNumbers : Object.freeze(numbers)
  const uninstall = numbers.length === 0 ? {} : { rolled_back_patch_numbers: numbers }
  const offers: ReleaseAnswers['offers'] = new Map()
  for (const [key, offer] of chooseOffers(patches)) {
    const patch = describeOffer(offer, signDownload)
    const text = encode({ patch_available: true, patch, ...uninstall })
    offers.set(key, { number: offer.number, answer: { text, rolledBack } })
  }
  const text = numbers.length === 0 ? nothing : encode({ patch_available: false, ...uninstall })
  return { rolledBack, nothing: { text, rolledBack }, offers }
}

function describeOffer({ number, artifact }: Offer, signDownload: (blobKey: string) => string) {
  const { hash, hash_signature, blob_key } = artifact
  return { number, download_url: signDownload(blob_key), hash, ...(hash_signature === null ? {} : { hash_signature }) }
}

/**
 * JSON in ASCII, so that its length is its size and it can be sent as latin1. A string, because Node sends headers and a
 * string in one piece, but headers and a Buffer in two: 1.6 µs of 18 per answer.
 */
function encode(response: PatchCheckResponse): string {
  return JSON.stringify(response).replaceAll(
    /[\u0080-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

/** `app` undefined: there is no such app. */
export function findAnswer(app: AppAnswers | undefined, check: PatchCheckRequest): Answer {
  if (app === undefined) return ofUnknownApp
  const release = app.releases.get(check.release_version)
  if (release === undefined) return ofUnknownRelease
  const offer = release.offers.get(keyOfPlace(check))
  return offer !== undefined && isOffered(offer.number, check.patch_number) ? offer.answer : release.nothing
}

/** `app` undefined: there is no such app. */
export function findRolledBack(app: AppAnswers | undefined, releaseVersion: string): readonly number[] {
  return app?.releases.get(releaseVersion)?.rolledBack ?? noNumbers
}
