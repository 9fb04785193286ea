import type { BlobStore } from '../blobs/blob-store.ts'
import type { Config } from '../config.ts'
import { createUrlSigner, type UrlSigner } from '../transfers/signed-urls.ts'
import { checkBacklog, checkSpool } from './check-backlog.ts'
import { checkBlobs } from './check-blobs.ts'
import { checkDatabase } from './check-database.ts'
import { checkDevices } from './check-devices.ts'
import { checkFolder } from './check-folder.ts'
import { checkMail } from './check-mail.ts'
import { checkOpenFiles } from './check-open-files.ts'
import { checkPublicUrl } from './check-public-url.ts'
import { checkReplica } from './check-replica.ts'
import { withClient } from './database.ts'
import { type Check, type Finding, runChecks } from './finding.ts'

/** `connectionString`: undefined when there is no database that could be asked. */
export type Patient = { config: Config; connectionString: string | undefined; openBlobs: () => Promise<BlobStore> }

export async function examine({ config, connectionString, openBlobs }: Patient): Promise<Finding[]> {
  const signer =
    connectionString === undefined ? undefined : findUrlSigner(config, connectionString).catch(() => undefined)
  const askAsDevice = async () => (connectionString === undefined ? [] : await checkDevices(config, connectionString))
  const checks: Check[] = [
    { name: 'data folder', run: () => checkFolder('data folder', config.dataDir) },
    { name: 'blobs', timeoutMs: 60_000, run: () => checkBlobs(openBlobs) },
    { name: 'public URL', run: async () => await checkPublicUrl(config, await signer, askAsDevice) },
    { name: 'mail', run: () => checkMail(config) },
    { name: 'open files', run: () => checkOpenFiles(config) },
    { name: 'spool', run: () => checkSpool(config) },
  ]
  if (connectionString !== undefined) {
    checks.push({ name: 'database', run: () => checkDatabase(connectionString, config) })
    const { databaseReplicaUrl } = config
    if (databaseReplicaUrl !== undefined)
      checks.push({ name: 'replica', run: () => checkReplica(databaseReplicaUrl, connectionString) })
    checks.push({ name: 'jobs', run: () => checkBacklog(connectionString) })
  }
  return await runChecks(checks)
}

/** What the server signs with; it makes it at its first start. */
async function findUrlSigner({ publicUrl }: Config, connectionString: string): Promise<UrlSigner | undefined> {
  return await withClient(connectionString, async (client) => {
    const { rows } = await client.query<{ value: Buffer }>(
      "select value from server_secrets where name = 'url-signing'",
    )
    return rows[0] === undefined ? undefined : createUrlSigner({ publicUrl, secret: rows[0].value })
  })
}
