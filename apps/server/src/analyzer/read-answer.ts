import { ReleasePlatform } from '@godwit/contract'
import { z } from 'zod'
import type { AnalysisProblem, AnalyzedApp } from './app-facts.ts'
import { limits } from './limits.ts'
import { type Message, maxIconBytes } from './messages.ts'
import { cleanName } from './text.ts'

/** What became of an archive. */
export type AnalysisOutcome =
  | { kind: 'analyzed'; facts: AnalyzedApp }
  /** The archive is at fault: another try would end in the same way. */
  | { kind: 'unanalyzable'; problem: AnalysisProblem; detail: string }
  /** Something else is at fault, such as a disk. */
  | { kind: 'failed'; reason: string }

const problems = {
  damaged_archive: true,
  encrypted_archive: true,
  unknown_format: true,
  malformed_content: true,
  missing_field: true,
  limit_exceeded: true,
} satisfies Record<AnalysisProblem, true>

const isProblem = (text: string): text is AnalysisProblem => Object.hasOwn(problems, text)

/** A character may be two units. */
const shortText = z
  .string()
  .min(1)
  .max(2 * limits.displayNameChars)
  .refine((text) => text.isWellFormed() && !/\p{Cc}/u.test(text))

const AnswerText = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('analyzed'),
    facts: z.object({
      platform: ReleasePlatform,
      displayName: shortText.refine((name) => cleanName(name) === name),
      packageName: shortText,
      minSdkVersion: shortText,
      targetSdkVersion: shortText,
      architectures: z
        .array(shortText)
        .max(64)
        .refine((names) => new Set(names).size === names.length),
    }),
  }),
  z.object({
    kind: z.literal('unanalyzable'),
    problem: z.string().refine(isProblem),
    detail: z.string().max(10_000),
  }),
  z.object({ kind: z.literal('failed'), reason: z.string().max(10_000) }),
])

const pngSignature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])

/**
 * The answer, of which nothing is believed that was not checked: a hostile archive may have taken over the process that
 * gave it. undefined: it is none.
 */
export function readAnswer({ text, icon }: Extract<Message, { kind: 'answer' }>): AnalysisOutcome | undefined {
  const parsed = AnswerText.safeParse(parseJson(text))
  if (!parsed.success) return undefined
  const answer = parsed.data
  if (answer.kind === 'failed') return answer
  if (answer.kind === 'unanalyzable') return { ...answer, detail: cleanName(answer.detail) ?? '' }
  if (icon.length === 0) return answer
  const isPng = icon.subarray(0, pngSignature.length).equals(pngSignature)
  return isPng && icon.length <= maxIconBytes ? { kind: 'analyzed', facts: { ...answer.facts, icon } } : undefined
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
