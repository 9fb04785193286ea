import { readFile, realpath } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { buildConnectionString, identifyServer } from './connection.ts'
import { FolderInUseError } from './folder-lock.ts'
import { type EmbeddedPostgres, type EmbeddedPostgresOptions, startEmbeddedPostgres } from './index.ts'
import { type Layout, listPaths } from './layout.ts'
import { inspectPid, readPidFile } from './postmaster-pid.ts'

const POLL_MS = 100
/** A server that is just starting may have to recover its database first. */
const WAIT_MS = 30_000

/**
 * The embedded database for a visit. While another process has it in its charge, that process goes on having it: `stop`
 * leaves it alone. Otherwise it is started, and stopped again. Makes no database where there is none.
 */
export async function connectOrStartEmbeddedPostgres(
  options: EmbeddedPostgresOptions,
): Promise<Pick<EmbeddedPostgres, 'connectionString' | 'stop'>> {
  const layout = listPaths(await findDatabaseFolder(options.dataDir))
  const deadline = Date.now() + WAIT_MS
  for (;;) {
    try {
      return await startEmbeddedPostgres({ ...options, lockWaitMs: 0 })
    } catch (error) {
      if (!(error instanceof FolderInUseError)) throw error
      const connectionString = await findRunning(layout)
      if (connectionString !== undefined) return { connectionString, stop: async () => {} }
      if (Date.now() > deadline) {
        throw new Error(`Another Godwit process has the database in ${layout.dataDir}, and it does not answer.`, {
          cause: error,
        })
      }
    }
    await delay(POLL_MS)
  }
}

async function findDatabaseFolder(dataDir: string): Promise<string> {
  try {
    const folder = await realpath(dataDir)
    await readFile(listPaths(folder).passwordFile)
    return folder
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    throw new Error(
      `There is no database in ${dataDir}. Is GODWIT_DATA_DIR right? The first start of the server makes it.`,
    )
  }
}

/** undefined while it starts or stops. */
async function findRunning(layout: Layout): Promise<string | undefined> {
  const pidFile = await readPidFile(layout.clusterDir)
  if (pidFile === undefined || pidFile === 'incomplete') return undefined
  const { pid, port, status } = pidFile
  if (status !== 'ready' || port === undefined || inspectPid(pid, layout.clusterDir) !== 'alive') return undefined
  const password = (await readFile(layout.passwordFile, 'utf8')).trim()
  const found = await identifyServer(port, password).catch(() => undefined)
  return found?.clusterDir === layout.clusterDir ? buildConnectionString(port, password) : undefined
}
