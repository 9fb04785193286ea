import type { ErrorCode, ReleaseStatus } from '@godwit/contract'

type Bytes = { hash: string; size_bytes: number }

/**
 * Why an artifact may not be registered, or undefined when it may. What is uploaded stays once its platform is active;
 * while the platform is a draft other bytes may replace it, so that a failed release can be run again.
 */
export function findRegistrationConflict(input: {
  uploaded: Bytes | undefined
  platformStatus: ReleaseStatus | undefined
  candidate: Bytes
}): ErrorCode | undefined {
  if (input.uploaded === undefined) return undefined
  if (input.platformStatus === 'active') return 'artifact_exists'
  return isSame(input.uploaded, input.candidate) ? 'artifact_exists' : undefined
}

function isSame(a: Bytes, b: Bytes): boolean {
  return a.size_bytes === b.size_bytes && a.hash.toLowerCase() === b.hash.toLowerCase()
}

/** What a text column becomes: undefined keeps it, the empty string clears it. */
export function nextNotes(notes: string | null | undefined): string | null | undefined {
  if (notes === null || notes === undefined) return undefined
  return notes === '' ? null : notes
}
