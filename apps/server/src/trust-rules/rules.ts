import type { CiJob } from './ci-job.ts'

/** What a trust rule says of the jobs that it lets in. */
export type TrustCondition = {
  issuer: string
  repository: string
  workflow: string
  environment: string | null
  ref_pattern: string | null
}

/** A rule, for the audit log. A CI job that makes rules has a `repository` of its own in the same event. */
export function describeCondition(condition: TrustCondition) {
  return {
    trusted_issuer: condition.issuer,
    trusted_repository: condition.repository,
    trusted_workflow: condition.workflow,
    trusted_environment: condition.environment,
    trusted_ref_pattern: condition.ref_pattern,
  }
}

/** Whether a rule lets a job in. Everything that the rule names has to be right; what the token lacks is not. */
export function trustsJob(rule: TrustCondition, job: CiJob): boolean {
  return (
    rule.issuer === job.issuer &&
    // CI systems take names of repositories in any case, and put into the token what somebody once typed.
    rule.repository.toLowerCase() === job.repository.toLowerCase() &&
    locateWorkflow(rule.workflow, job) === job.workflowPath &&
    (rule.environment === null || rule.environment === job.environment) &&
    (rule.ref_pattern === null || (job.ref !== undefined && matchesPattern(rule.ref_pattern, job.ref)))
  )
}

/** A file name alone means the folder where the CI system looks for workflows. */
function locateWorkflow(workflow: string, job: CiJob): string {
  return workflow.includes('/') ? workflow : job.workflowFolder + workflow
}

/**
 * `*` stands for anything but `/`, `**` for anything, every other character for itself.
 *
 * Organizations write these patterns, so the time has to stay proportional to pattern × text. Regular expressions go back
 * and try again: picomatch took 32 s for `*a*a*a*a*a*a*a*a` against 60 times `a` and a `b`.
 */
export function matchesPattern(pattern: string, text: string): boolean {
  const tokens = pattern.match(/\*+|[^*]/gu) ?? []
  const characters = [...text]
  // reached[i]: the tokens so far can stand for the first i characters.
  let reached = characters.map(() => false)
  reached.unshift(true)
  for (const token of tokens) {
    reached = token.startsWith('*') ? extend(reached, characters, token.length > 1) : step(reached, characters, token)
  }
  return reached.at(-1) ?? false
}

function step(reached: boolean[], characters: string[], expected: string): boolean[] {
  return reached.map((_, index) => index > 0 && reached[index - 1] === true && characters[index - 1] === expected)
}

function extend(reached: boolean[], characters: string[], passesSlash: boolean): boolean[] {
  let isReached = false
  return reached.map((isStart, index) => {
    const canPass = index > 0 && (passesSlash || characters[index - 1] !== '/')
    isReached = isStart || (isReached && canPass)
    return isReached
  })
}

/** The rule by which a job signs in: of those that trust it, the oldest of the one service account that is meant. */
export function chooseRule<R extends { id: number; service_account_id: number }>(
  trusting: R[],
  serviceAccountId: number | undefined,
): { rule: R } | { refusal: 'none' | 'several' } {
  const candidates = trusting.filter(
    (rule) => serviceAccountId === undefined || rule.service_account_id === serviceAccountId,
  )
  const rule = candidates.toSorted((a, b) => a.id - b.id)[0]
  if (rule === undefined) return { refusal: 'none' }
  const isClear = candidates.every((candidate) => candidate.service_account_id === rule.service_account_id)
  return isClear ? { rule } : { refusal: 'several' }
}
