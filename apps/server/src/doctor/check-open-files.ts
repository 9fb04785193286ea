import type { Config } from '../config.ts'
import { capConnections, readOpenFileLimit } from '../http/open-file-limit.ts'
import type { Finding } from './finding.ts'

/** Of this process, which Node raises to the hard limit as it does for the server. A service manager may set another. */
export async function checkOpenFiles({ maxConnections }: Pick<Config, 'maxConnections'>): Promise<Finding[]> {
  const check = 'open files'
  const limit = await readOpenFileLimit()
  if (limit === undefined) return [{ check, result: 'ok', found: 'no limit is known here' }]
  return [judgeOpenFiles(maxConnections, limit)]
}

export function judgeOpenFiles(maxConnections: number, limit: number): Finding {
  const check = 'open files'
  const possible = capConnections(maxConnections, limit)
  const found = `a process may have ${limit} files open, enough for ${possible} of ${maxConnections} connections`
  if (possible === maxConnections) return { check, result: 'ok', found }
  const mend = 'Raise the hard limit (ulimit -Hn, LimitNOFILE of systemd), or lower GODWIT_MAX_CONNECTIONS.'
  return { check, result: 'warning', found, mend }
}
