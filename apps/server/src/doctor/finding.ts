/** What a check has seen. `mend` says what to do about it; a warning is worth a look, a failure keeps something from working. */
export type Finding = { check: string; result: 'ok' | 'warning' | 'failure'; found: string; mend?: string }

export type Check = { name: string; timeoutMs?: number; run: () => Promise<Finding[]> }

/** What a check may take unless it says so: one that hangs must not keep the others from being told. */
const defaultTimeoutMs = 10_000

/** All at once. A check that throws, or does not end, is a failure by itself. */
export async function runChecks(checks: Check[]): Promise<Finding[]> {
  const findings = await Promise.all(checks.map(runCheck))
  return findings.flat()
}

async function runCheck({ name, timeoutMs = defaultTimeoutMs, run }: Check): Promise<Finding[]> {
  const { promise: tooLate, resolve } = Promise.withResolvers<Finding[]>()
  const failWith = (found: string): Finding[] => [{ check: name, result: 'failure', found }]
  const timer = setTimeout(() => resolve(failWith(`did not answer within ${timeoutMs / 1000} s`)), timeoutMs)
  try {
    return await Promise.race([run(), tooLate])
  } catch (error) {
    return failWith(describe(error))
  } finally {
    clearTimeout(timer)
  }
}

/** The message of an error and of what caused it, in one line. */
export function describe(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return describe(error.errors[0])
  if (!(error instanceof Error)) return String(error)
  const cause = error.cause === undefined ? '' : ` (${describe(error.cause)})`
  return `${error.message}${cause}`.replaceAll(/\s*\n\s*/g, ' ')
}
