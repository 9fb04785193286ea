import { execFile } from 'node:child_process'
import { mkdir, rm, statfs, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { atTheEnd } from '../closing.ts'

const run = promisify(execFile)

/** A file system of its own in memory, which can be full, read-only or gone. Only root may mount one. */
export type SmallDisk = {
  folder: string
  /** Leaves room for so many bytes. */
  fill: (freeBytes?: number) => Promise<void>
  empty: () => Promise<void>
  setReadOnly: (isReadOnly: boolean) => Promise<void>
  /** As when a volume is not attached: the folder is there and has nothing in it. What it held comes back with `attach`. */
  detach: () => Promise<void>
  attach: () => Promise<void>
}

export function canMount(): boolean {
  return process.platform === 'linux' && process.getuid?.() === 0
}

export async function mountSmallDisk(folder: string, sizeMb: number): Promise<SmallDisk> {
  const behind = `${folder}.behind`
  const ballast = join(folder, 'ballast')
  const unmount = async (path: string) => void (await run('umount', ['--lazy', path]).catch(() => undefined))
  await mkdir(folder, { recursive: true })
  await mkdir(behind, { recursive: true })
  await run('mount', ['-t', 'tmpfs', '-o', `size=${sizeMb}m,mode=0777`, 'tmpfs', behind])
  atTheEnd(() => unmount(behind))
  const attach = async () => void (await run('mount', ['--bind', behind, folder]))
  await attach()
  atTheEnd(() => unmount(folder))
  return {
    folder,
    fill: async (freeBytes = 0) => {
      const { bavail, bsize } = await statfs(folder)
      // Somebody else may have written meanwhile: full is full.
      await writeFile(ballast, Buffer.alloc(Math.max(0, bavail * bsize - freeBytes))).catch(acceptFull)
    },
    empty: () => rm(ballast, { force: true }),
    setReadOnly: async (isReadOnly) => {
      await run('mount', ['-o', `remount,bind,${isReadOnly ? 'ro' : 'rw'}`, folder])
    },
    detach: () => unmount(folder),
    attach,
  }
}

function acceptFull(error: NodeJS.ErrnoException): void {
  if (error.code !== 'ENOSPC') throw error
}
