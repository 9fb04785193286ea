import { access, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { BlobsUnavailableError } from './blob-store.ts'

const markName = '.godwit-blobs'

/**
 * Leaves a mark in the folder, and returns what rejects for as long as it is not there. A disk that is detached leaves an
 * empty folder behind: uploads would be taken onto the wrong disk, and every download would be told that there is no such
 * blob, after which a device gives its patch up.
 */
export async function markFolder(dir: string): Promise<() => Promise<void>> {
  const mark = join(dir, markName)
  const isMarked = await writeFile(mark, 'The blobs of Godwit are in this folder.\n').then(
    () => true,
    // A disk that is read-only can still be read from.
    async () => await exists(mark),
  )
  return async () => {
    if (isMarked && !(await exists(mark)))
      throw new BlobsUnavailableError(`${dir} is not what it was: ${markName} is gone`)
  }
}

async function exists(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  )
}
