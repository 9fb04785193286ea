import { copyFileSync, statSync, truncateSync } from 'node:fs'
import { open } from 'node:fs/promises'

const LIMIT_BYTES = 8 * 1024 * 1024
const TAIL_BYTES = 4_096

/** Keeps PostgreSQL's log and one predecessor below 8 MB each. Safe while PostgreSQL writes: it appends. */
export function trimLog(logFile: string): void {
  if (measureLog(logFile) <= LIMIT_BYTES) return
  copyFileSync(logFile, `${logFile}.1`)
  truncateSync(logFile)
}

export function measureLog(logFile: string): number {
  return statSync(logFile, { throwIfNoEntry: false })?.size ?? 0
}

/** What PostgreSQL wrote since the log had this size, without the time and pid before each line. */
export async function readLogSince(logFile: string, sizeBytes: number): Promise<string> {
  const file = await open(logFile, 'r')
  try {
    const { size } = await file.stat()
    const start = Math.max(sizeBytes, size - TAIL_BYTES)
    const { buffer, bytesRead } = await file.read(Buffer.alloc(TAIL_BYTES), 0, TAIL_BYTES, start)
    return buffer
      .toString('utf8', 0, bytesRead)
      .replaceAll(/^\d{4}-\S+ \S+ UTC \[\d+\] /gm, '')
      .trim()
  } finally {
    await file.close()
  }
}
