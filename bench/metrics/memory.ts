import { readdir, readFile } from 'node:fs/promises'

const bytesPerMb = 1024 ** 2

/**
 * What the service has in memory now, and at most the most that it had (MB): the process that answers and the one that
 * counts. Linux only; NaN elsewhere, or when they are gone.
 */
export async function readServiceMemory(pid: number): Promise<{ rssMb: number; peakMb: number }> {
  const children = await listChildren(pid)
  const counts = await Promise.all(children.map(isCountingProcess))
  const sizes = await Promise.all([pid, ...children.filter((_, index) => counts[index])].map(readProcessMemory))
  const sum = (name: 'rssMb' | 'peakMb') => sizes.reduce((total, size) => total + size[name], 0)
  return { rssMb: sum('rssMb'), peakMb: sum('peakMb') }
}

async function isCountingProcess(pid: number): Promise<boolean> {
  return (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).includes('activity/store/worker.ts')
}

async function readProcessMemory(pid: number): Promise<{ rssMb: number; peakMb: number }> {
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
