import { PatchCheckRequest, ReleasePlatform } from '@godwit/contract'
import { validate } from '../http/validation.ts'

/**
 * A check as the contract has it, or a 400 that names each field. What current devices send is recognized without the
 * schema, which costs 1 µs of the 20 that a check takes; a test proves that the two agree.
 */
export function readPatchCheck(body: unknown): PatchCheckRequest {
  return isOrdinaryCheck(body) ? body : validate(PatchCheckRequest, body)
}

const platforms = new Set<unknown>(ReleasePlatform.options)

function isOrdinaryCheck(body: unknown): body is PatchCheckRequest {
  if (typeof body !== 'object' || body === null) return false
  const check = body as Record<keyof PatchCheckRequest, unknown>
  return (
    isText(check.app_id) &&
    isText(check.channel) &&
    isText(check.release_version) &&
    platforms.has(check.platform) &&
    isText(check.arch) &&
    (check.client_id === undefined || isText(check.client_id)) &&
    check.patch_number === undefined &&
    check.current_patch_number === undefined &&
    check.patch_hash === undefined
  )
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && !value.includes('\0') && value.isWellFormed()
}
