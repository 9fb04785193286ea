import { open } from 'node:fs/promises'

/** Makes the names in a folder survive a power cut. Windows cannot open a folder, and keeps names in a journal of its own. */
export async function syncFolder(folder: string): Promise<void> {
  if (process.platform === 'win32') return
  await using handle = await open(folder, 'r')
  await handle.sync()
}
