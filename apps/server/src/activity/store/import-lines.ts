import { ActivityImportLine, isStorableText, ReleasePlatform } from '@godwit/contract'
import { dayMs } from '../../time.ts'

export type ImportLine = {
  clientId: string
  platform: ReleasePlatform
  arch: string
  releaseVersion: string | null
  /** 0: the base release. */
  patch: number
  /** Unix ms. */
  timeMs: number
}

/** No line of the contract's fields is as long. */
export const maxLineChars = 16_384
const maxNameChars = 256
const maxAheadMs = dayMs

const platforms = new Set<unknown>(ReleasePlatform.options)

/**
 * Reads a line, or says why not. What is written as usual is recognized without the schema, which would take longer than
 * all the rest; a test proves that both agree.
 */
export function readImportLine(text: string, nowMs: number): ImportLine | string {
  if (text.length > maxLineChars) return `is longer than ${maxLineChars} characters`
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return 'is not JSON'
  }
  const line = readOrdinary(value) ?? readBySchema(value)
  if (typeof line !== 'string' && line.timeMs > nowMs + maxAheadMs) return 'time: is more than a day in the future'
  return line
}

function readOrdinary(value: unknown): ImportLine | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const { client_id, platform, arch, release_version = null, patch_number, time } = value as Record<string, unknown>
  if (!isName(client_id) || client_id === '' || !platforms.has(platform) || !isName(arch)) return undefined
  if (release_version !== null && !isName(release_version)) return undefined
  const patch = patch_number ?? 0
  if (typeof patch !== 'number' || !Number.isSafeInteger(patch) || patch < 0) return undefined
  const timeMs = typeof time === 'string' ? readTime(time) : undefined
  if (timeMs === undefined) return undefined
  const releaseVersion = release_version === '' ? null : release_version
  return { clientId: client_id, platform: platform as ReleasePlatform, arch, releaseVersion, patch, timeMs }
}

function isName(value: unknown): value is string {
  return typeof value === 'string' && value.length <= maxNameChars && isStorableText(value)
}

function readBySchema(value: unknown): ImportLine | string {
  const parsed = ActivityImportLine.safeParse(value)
  if (!parsed.success) {
    const [issue] = parsed.error.issues
    const field = issue?.path.join('.') ?? ''
    return field === '' ? (issue?.message ?? 'is wrong') : `${field}: ${issue?.message}`
  }
  const { client_id, platform, arch, release_version, patch_number, time } = parsed.data
  const timeMs = Date.parse(time)
  if (!Number.isFinite(timeMs) || timeMs <= 0) return 'time: must be after 1970'
  return {
    clientId: client_id,
    platform,
    arch,
    releaseVersion: release_version ? release_version : null,
    patch: patch_number ?? 0,
    timeMs,
  }
}

/** `YYYY-MM-DDTHH:MM:SSZ` or with milliseconds (20 ns, Date.parse takes 200). undefined for everything else. */
function readTime(text: string): number | undefined {
  const hasFraction = text.length === 24
  if ((!hasFraction && text.length !== 20) || text.charCodeAt(text.length - 1) !== 90) return undefined
  const year = digitsAt(text, 0, 4)
  const month = digitsAt(text, 5, 2)
  const day = digitsAt(text, 8, 2)
  const hour = digitsAt(text, 11, 2)
  const minute = digitsAt(text, 14, 2)
  const second = digitsAt(text, 17, 2)
  const fraction = hasFraction ? digitsAt(text, 20, 3) : 0
  // The digits of all together: one that is none makes it NaN.
  if (Number.isNaN(year + month + day + hour + minute + second + fraction)) return undefined
  if (text[4] !== '-' || text[7] !== '-' || text[10] !== 'T' || text[13] !== ':' || text[16] !== ':') return undefined
  if (hasFraction && text[19] !== '.') return undefined
  if (year < 1971 || month < 1 || month > 12 || day < 1 || day > 28 || hour > 23 || minute > 59 || second > 59) {
    return undefined
  }
  return Date.UTC(year, month - 1, day, hour, minute, second, fraction)
}

function digitsAt(text: string, from: number, count: number): number {
  let value = 0
  for (let index = from; index < from + count; index += 1) {
    const digit = text.charCodeAt(index) - 48
    if (digit < 0 || digit > 9) return Number.NaN
    value = value * 10 + digit
  }
  return value
}
