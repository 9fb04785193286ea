import { mkdir, open, rm, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, type Finding } from './finding.ts'
import { randomHex } from './random-hex.ts'

const mebibyte = 1024 ** 2
/** PostgreSQL needs room for its log alone to start again. */
const failureBytes = 256 * mebibyte
const warningBytes = 5 * 1024 * mebibyte
/** Every commit waits for one. */
const slowSyncMs = 100

/** Whether files can be written there durably, and how much room there is. */
export async function checkFolder(check: string, folder: string): Promise<Finding[]> {
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 })
    return [await probeWriting(check, folder), await measureRoom(check, folder)]
  } catch (error) {
    const mend = 'Let the account that runs the server own the folder, and see that its disk is healthy and has room.'
    return [{ check, result: 'failure', found: `${folder} cannot be written: ${describe(error)}`, mend }]
  }
}

async function probeWriting(check: string, folder: string): Promise<Finding> {
  const path = join(folder, `.doctor-${randomHex()}`)
  const file = await open(path, 'wx', 0o600)
  try {
    const startedAt = performance.now()
    await file.writeFile(Buffer.alloc(mebibyte))
    await file.sync()
    const ms = Math.round(performance.now() - startedAt)
    const found = `${folder}: 1 MiB was written and synced in ${ms} ms`
    if (ms <= slowSyncMs) return { check, result: 'ok', found }
    return { check, result: 'warning', found, mend: 'Every commit waits for this disk: use a faster one.' }
  } finally {
    await file.close()
    await rm(path, { force: true })
  }
}

async function measureRoom(check: string, folder: string): Promise<Finding> {
  const { bavail, bsize } = await statfs(folder)
  const freeBytes = bavail * bsize
  const found = `${folder} has ${Math.floor(freeBytes / mebibyte)} MiB free`
  if (freeBytes >= warningBytes) return { check, result: 'ok', found }
  const mend = 'Make room: uploads are refused and the embedded database stops when the disk is full.'
  return { check, result: freeBytes < failureBytes ? 'failure' : 'warning', found, mend }
}
