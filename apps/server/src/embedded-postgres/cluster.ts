import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chmod, chown, mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import { syncFolder } from '../sync-folder.ts'
import { type Account, runAs } from './account.ts'
import { buildEnvironment } from './binaries.ts'
import type { Layout } from './layout.ts'
import type { Log } from './log.ts'

/** The superuser, and the name of the database. */
export const NAME = 'godwit'

const INITDB_TIMEOUT_MS = 300_000

/** The cluster's password, after making sure that there is a complete cluster. The caller holds the folder's lock. */
export async function prepareCluster(
  layout: Layout,
  initdb: string,
  account: Account | undefined,
  durable: boolean,
  log: Log,
): Promise<string> {
  await removeUnfinished(layout, log)
  const exists = (await readIfExists(path.join(layout.clusterDir, 'PG_VERSION'))) !== undefined
  const known = (await readIfExists(layout.passwordFile))?.trim()
  if (exists && !known) {
    throw new Error(
      `The embedded database in ${layout.clusterDir} is there but its password file ${layout.passwordFile} is not. ` +
        'Restore it from the same backup as the cluster.',
    )
  }
  const password = known || (await writePassword(layout))
  if (!exists) await createCluster(layout, initdb, account, durable, log)
  // PostgreSQL refuses a folder that others may read, which many ways of copying one make of it.
  else await chmod(layout.clusterDir, 0o700)
  return password
}

async function createCluster(
  layout: Layout,
  initdb: string,
  account: Account | undefined,
  durable: boolean,
  log: Log,
): Promise<void> {
  const startedAt = performance.now()
  const folder = path.join(layout.dataDir, layout.unfinishedPrefix + randomBytes(6).toString('hex'))
  await mkdir(folder, { mode: 0o700 })
  if (account) await chown(folder, account.uid, account.gid)
  const command = runAs(account, initdb, [
    `--pgdata=${folder}`,
    `--username=${NAME}`,
    `--pwfile=${layout.passwordFile}`,
    '--auth=scram-sha-256',
    '--encoding=UTF8',
    // Order by code point, upper and lower case by Unicode, both from PostgreSQL itself: an update of the system's C
    // library cannot change the order under an index, and sorting is a memcmp.
    '--locale=C',
    '--locale-provider=builtin',
    '--builtin-locale=C.UTF-8',
    '--no-instructions',
    // Otherwise initdb ends with an fsync of the whole tree: 0.07 s measured on ext4. Without it a loss of power could
    // keep transactions that were synced later and lose the catalogs below them.
    ...(durable ? [] : ['--no-sync']),
  ])
  try {
    await promisify(execFile)(command.file, command.args, {
      cwd: folder,
      env: buildEnvironment(),
      timeout: INITDB_TIMEOUT_MS,
      windowsHide: true,
    })
  } catch (cause) {
    await rm(folder, { recursive: true, force: true })
    const output = (cause as { stderr?: string }).stderr?.trim()
    throw new Error(`Could not create the embedded database in ${layout.dataDir}: ${output || cause}`, { cause })
  }
  await rename(folder, layout.clusterDir)
  if (durable) await syncFolder(layout.dataDir)
  log.info(
    { folder: layout.clusterDir, ms: Math.round(performance.now() - startedAt) },
    'created the embedded database',
  )
}

/** What is left of an initdb that was killed. Nobody else is making one: the folder is locked. */
async function removeUnfinished(layout: Layout, log: Log): Promise<void> {
  for (const name of await readdir(layout.dataDir)) {
    if (!name.startsWith(layout.unfinishedPrefix)) continue
    const folder = path.join(layout.dataDir, name)
    try {
      // initdb outlives the process that started it and may still be writing; losing its folder ends it.
      await rm(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 20 })
      log.warn({ folder }, 'removed an unfinished embedded database')
    } catch (error) {
      log.warn({ folder, err: error }, 'could not remove an unfinished embedded database; the next start tries again')
    }
  }
}

/** Complete and on disk before there is a cluster that nothing else would open. */
async function writePassword(layout: Layout): Promise<string> {
  const password = randomBytes(24).toString('base64url')
  const unfinished = `${layout.passwordFile}.new`
  await rm(unfinished, { force: true })
  const file = await open(unfinished, 'wx', 0o600)
  try {
    await file.writeFile(`${password}\n`)
    await file.sync()
  } finally {
    await file.close()
  }
  await rename(unfinished, layout.passwordFile)
  return password
}

async function readIfExists(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
