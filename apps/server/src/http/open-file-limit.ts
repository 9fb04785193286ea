import { readFile } from 'node:fs/promises'

/** Files of the database's connections, of blobs that are read and written, and of the runtime itself. */
const reservedFiles = 512

/** How many files this process may have open, after Node has raised the soft limit to the hard one. undefined: not known. */
export async function readOpenFileLimit(): Promise<number | undefined> {
  const limits = await readFile('/proc/self/limits', 'utf8').catch(() => '')
  const [, soft] = /^Max open files\s+(\d+|unlimited)/m.exec(limits) ?? []
  return soft === undefined || soft === 'unlimited' ? undefined : Number(soft)
}

/** The connections for which there are files. */
export function capConnections(maxConnections: number, openFileLimit: number | undefined): number {
  return Math.min(maxConnections, Math.max((openFileLimit ?? Number.POSITIVE_INFINITY) - reservedFiles, 16))
}
