import { mkdir, realpath } from 'node:fs/promises'
import { chooseAccount } from './account.ts'
import { findBinaries } from './binaries.ts'
import { prepareCluster } from './cluster.ts'
import { buildConnectionString } from './connection.ts'
import { lockFolder } from './folder-lock.ts'
import { listSettings, nameLaunch } from './launch.ts'
import { listPaths } from './layout.ts'
import type { Log } from './log.ts'
import { bringUp, type Context } from './postmaster.ts'
import { supervise } from './supervise.ts'

export type EmbeddedPostgresOptions = {
  /** Holds the cluster, its password, its log and its lock. Created when missing. */
  dataDir: string
  log: Log
  /** False is for the speed of tests: a crash of PostgreSQL loses the last commits, a loss of power everything. */
  durable?: boolean
  startTimeoutMs?: number
  /** How long to wait for another process to let go of the folder. */
  lockWaitMs?: number
  maxConnections?: number
}

export type EmbeddedPostgres = {
  /** Stays the same for as long as this object lives, through restarts of PostgreSQL. */
  connectionString: string
  /** Whether a postmaster was already running, left by a process that was killed. */
  adopted: boolean
  stop(): Promise<void>
}

export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const { log, durable = true, startTimeoutMs = 15_000, maxConnections = 100 } = options
  const startedAt = performance.now()
  await mkdir(options.dataDir, { recursive: true, mode: 0o700 })
  // PostgreSQL reports its folder without symbolic links.
  const layout = listPaths(await realpath(options.dataDir))
  const releaseLock = await lockFolder(layout.lockFile, layout.dataDir, options.lockWaitMs)
  try {
    const binaries = await findBinaries()
    const account = await chooseAccount(layout.clusterDir)
    const password = await prepareCluster(layout, binaries.initdb, account, durable, log)
    const settings = listSettings({ durable, maxConnections })
    const launchId = nameLaunch(binaries.postgres, settings)
    const context: Context = { layout, binaries, account, password, settings, launchId, startTimeoutMs, log }
    const postmaster = await bringUp(context, new AbortController().signal)
    const { pid, port } = postmaster
    const adopted = postmaster.child === undefined
    const ms = Math.round(performance.now() - startedAt)
    log.info(
      { folder: layout.clusterDir, pid, port, ms },
      adopted ? 'adopted the running PostgreSQL' : 'started PostgreSQL',
    )
    const end = supervise(context, postmaster)
    let stopped: Promise<void> | undefined
    const stop = () => {
      stopped ??= end().finally(releaseLock)
      return stopped
    }
    return { connectionString: buildConnectionString(port, password), adopted, stop }
  } catch (error) {
    releaseLock()
    throw error
  }
}
