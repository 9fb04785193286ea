import type { ErrorCode } from '@godwit/contract'

/** Why an artifact may not be registered, or undefined when it may. The codes are the command line client's own. */
export function findRegistrationConflict(input: {
  uploaded: { hash: string } | undefined
  candidate: { hash: string }
}): ErrorCode | undefined {
  if (input.uploaded === undefined) return undefined
  return input.uploaded.hash === input.candidate.hash
    ? 'patch_artifacts_create_existing_artifact'
    : 'patch_artifacts_create_existing_artifact_hash_mismatch'
}
