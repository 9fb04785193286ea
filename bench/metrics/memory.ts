import { readdir, readFile } from 'node:fs/promises'

const bytesPerMb = 1024 ** 2

/** What a process has in memory now, and the most that it had (MB). Linux only; NaN elsewhere, or when it is gone. */
export async function readProcessMemory(pid: number): Promise<{ rssMb: number; peakMb: number }> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')
  const readKb = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1] ?? Number.NaN)
  return { rssMb: (readKb('VmRSS') * 1024) / bytesPerMb, peakMb: (readKb('VmHWM') * 1024) / bytesPerMb }
}

/** Of a process and its children, what they share counted once (MB): a PostgreSQL server. */
export async function readFamilyMemory(pid: number): Promise<number> {
  const sizes = await Promise.all([pid, ...(await listChildren(pid))].map(readProportionalKb))
  return (sizes.reduce((sum, size) => sum + size, 0) * 1024) / bytesPerMb
}

async function listChildren(parent: number): Promise<number[]> {
  const pids = (await readdir('/proc').catch(() => [])).map(Number).filter((pid) => pid > 0)
  const parents = await Promise.all(
    pids.map(async (pid) => {
      const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
      // proc(5): the parent is the 4th field; the 2nd may contain spaces.
      return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])
    }),
  )
  return pids.filter((_, index) => parents[index] === parent)
}

async function readProportionalKb(pid: number): Promise<number> {
  const rollup = await readFile(`/proc/${pid}/smaps_rollup`, 'utf8').catch(() => '')
  return Number(/^Pss:\s+(\d+) kB/m.exec(rollup)?.[1] ?? 0)
}
