import { Session } from 'node:inspector'

type Range = { startOffset: number; endOffset: number; count: number }
type Coverage = { result: { url: string; functions: { ranges: Range[] }[] }[] }

/**
 * Which blocks of the code ran, as V8 itself counts them: sources run as they are, without a build. Asking costs some
 * milliseconds, which is why it is asked once for many runs.
 */
export function startCoverage(isWanted: (url: string) => boolean) {
  const session = new Session()
  session.connect()
  const call = (method: string, options?: object): unknown => {
    let answer: unknown
    // The session is of this thread: it answers before `post` returns.
    session.post(method, options, (error, result) => {
      if (error) throw error
      answer = result
    })
    return answer
  }
  call('Profiler.enable')
  call('Profiler.startPreciseCoverage', { callCount: true, detailed: true })
  return {
    /** What ran since the last time. */
    take: (): Set<string> => {
      const ran = new Set<string>()
      const { result } = call('Profiler.takePreciseCoverage') as Coverage
      for (const { url, functions } of result) {
        if (!isWanted(url)) continue
        for (const { startOffset, endOffset, count } of functions.flatMap(({ ranges }) => ranges)) {
          if (count > 0) ran.add(`${url} ${startOffset} ${endOffset}`)
        }
      }
      return ran
    },
  }
}
