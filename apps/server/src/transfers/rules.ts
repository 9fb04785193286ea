import type { ErrorCode, ReleaseStatus } from '@godwit/contract'

export type ContentRange =
  | { kind: 'chunk'; from: number; to: number; total: number }
  // Asks what is stored: `bytes */TOTAL`.
  | { kind: 'status'; total: number }

/** How far an upload has come. */
export type UploadState = { sizeBytes: number; receivedBytes: number; isFinished: boolean }

export type ChunkDecision =
  | { kind: 'refuse'; details: string }
  /** Nothing of this request is stored; the answer says how far the upload has come. */
  | { kind: 'answer' }
  /** Past `skipBytes` of the body, at most `maxBytes` are stored from `offset` on. */
  | { kind: 'store'; skipBytes: number; offset: number; maxBytes: number }

/** Fifteen digits are exact as a number, and more than any file has. */
const contentRangePattern = /^bytes (?:(\d{1,15})-(\d{1,15})|\*)\/(\d{1,15})$/i

// `bytes FROM-TO/TOTAL` or `bytes */TOTAL` (RFC 9110, 14.4), or undefined when it is neither.
export function parseContentRange(header: string): ContentRange | undefined {
  const match = contentRangePattern.exec(header.trim())
  if (match === null) return undefined
  const total = Number(match[3])
  if (match[1] === undefined) return { kind: 'status', total }
  const from = Number(match[1])
  const to = Number(match[2])
  return from <= to && to < total ? { kind: 'chunk', from, to, total } : undefined
}

/**
 * What to do with a chunk. Its bytes may be here already, in part or all of them: a client whose connection broke sends
 * the same chunk again. A chunk past the stored bytes would leave a gap, so that the client is told where to go on.
 */
export function decideChunk(state: UploadState, range: ContentRange, contentLength: number | undefined): ChunkDecision {
  if (range.total !== state.sizeBytes) {
    return { kind: 'refuse', details: `Content-Range: ${state.sizeBytes} bytes were registered, not ${range.total}` }
  }
  if (range.kind === 'status' || chooseAnswer(state) !== 'incomplete') return { kind: 'answer' }
  const length = range.to - range.from + 1
  if (contentLength !== undefined && contentLength !== length) {
    return { kind: 'refuse', details: `Content-Length: is ${contentLength}, but Content-Range has ${length} bytes` }
  }
  if (range.from > state.receivedBytes || range.to < state.receivedBytes) return { kind: 'answer' }
  return {
    kind: 'store',
    skipBytes: state.receivedBytes - range.from,
    offset: state.receivedBytes,
    maxBytes: range.to - state.receivedBytes + 1,
  }
}

/**
 * What a client is told. `finish` comes before `complete`: every byte is stored, but a crash may have come before the
 * artifact was completed, and nobody else will ever do it.
 */
export function chooseAnswer(state: UploadState): 'incomplete' | 'finish' | 'complete' {
  if (state.isFinished) return 'complete'
  return state.receivedBytes === state.sizeBytes ? 'finish' : 'incomplete'
}

/** The `Range` of a 308. Without one the client starts at the first byte. */
export function formatStoredRange(receivedBytes: number): string | undefined {
  return receivedBytes === 0 ? undefined : `bytes=0-${receivedBytes - 1}`
}

/** What becomes of a release artifact whose bytes have all arrived. Ids grow in the order of registration. */
export function placeReleaseArtifact(input: {
  candidateId: number
  uploadedId: number | undefined
  platformStatus: ReleaseStatus | undefined
}): 'take' | 'replace' | 'refuse' {
  const { candidateId, uploadedId, platformStatus } = input
  // The second case is this very artifact, completed by another process in the meantime.
  if (uploadedId === undefined || uploadedId === candidateId) return 'take'
  return platformStatus !== 'active' && candidateId > uploadedId ? 'replace' : 'refuse'
}

/** The 409 for other bytes than those that an artifact is made of. */
export const otherBytesConflict = {
  release: 'artifact_exists',
  patch: 'patch_artifacts_create_existing_artifact_hash_mismatch',
} as const satisfies Record<string, ErrorCode>

export type ByteRange = { start: number; end: number }

export type DownloadAnswer = { status: 200; range: undefined } | { status: 206; range: ByteRange } | { status: 304 }

/**
 * How a download is answered (RFC 9110, 13.2.2 and 14.2). A range that cannot be satisfied gets the whole file: a device
 * that has every byte but could not install them asks for what follows, and would never recover from 416.
 */
export function chooseDownloadAnswer(input: {
  method: string
  sizeBytes: number
  etag: string
  range: string | undefined
  ifRange: string | undefined
  ifNoneMatch: string | undefined
}): DownloadAnswer {
  if (input.ifNoneMatch !== undefined && matchesEtag(input.ifNoneMatch, input.etag)) return { status: 304 }
  const isRangeMeant = input.ifRange === undefined || input.ifRange.trim() === input.etag
  const range =
    input.range !== undefined && input.method === 'GET' && isRangeMeant
      ? parseRange(input.range, input.sizeBytes)
      : undefined
  return range === undefined ? { status: 200, range } : { status: 206, range }
}

/**
 * Whether the store may answer in our place. It would answer 416 to a range past the end, from which devices never recover,
 * does not know our ETag, and takes only the method that was signed.
 */
export function canRedirect(input: {
  method: string
  sizeBytes: number
  answer: DownloadAnswer
  range: string | undefined
  ifRange: string | undefined
}): boolean {
  const { method, sizeBytes, answer, range, ifRange } = input
  const isRangeServed = range === undefined || answer.status === 206
  return method === 'GET' && sizeBytes > 0 && answer.status !== 304 && isRangeServed && ifRange === undefined
}

function matchesEtag(ifNoneMatch: string, etag: string): boolean {
  return ifNoneMatch.split(',').some((candidate) => {
    const tag = candidate.trim()
    return tag === '*' || tag.replace(/^W\//, '') === etag
  })
}

/** One satisfiable range, or undefined: several ranges, nonsense and what lies past the end are not served. */
export function parseRange(header: string, sizeBytes: number): ByteRange | undefined {
  const match = /^bytes=\s*(\d{0,15})-(\d{0,15})$/i.exec(header.trim())
  if (match === null) return undefined
  const [, first = '', last = ''] = match
  if (first === '') {
    const suffixBytes = Math.min(Number(last), sizeBytes)
    return suffixBytes === 0 ? undefined : { start: sizeBytes - suffixBytes, end: sizeBytes - 1 }
  }
  const start = Number(first)
  if (start >= sizeBytes || (last !== '' && Number(last) < start)) return undefined
  return { start, end: last === '' ? sizeBytes - 1 : Math.min(Number(last), sizeBytes - 1) }
}
