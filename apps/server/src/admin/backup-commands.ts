import { Command } from 'commander'
import { makeBackup } from '../backup/make-backup.ts'
import type { Manifest } from '../backup/manifest.ts'
import { restoreBackup } from '../backup/restore-backup.ts'
import { withAdminStores, withNewAdminStores } from './open-admin-deps.ts'
import { say } from './say.ts'

export function backupCommand(): Command {
  return new Command('backup')
    .description(
      'Write the database and the blobs as they are at one moment into a folder, while the server runs. The next backup ' +
        'into the same folder copies only blobs that are new.',
    )
    .argument('<folder>', 'where to; nothing else may be in it')
    .addHelpText('after', '\nIt holds hashes of passwords and the secrets that sign: keep it as safe as the server.')
    .action(async (folder: string) => {
      const { manifest, copiedBlobs } = await withAdminStores(async (stores) => await makeBackup(stores, folder))
      say(`The backup of ${manifest.made_at} is complete: ${describeContents(manifest)}, ${copiedBlobs} of them new.`)
    })
}

export function restoreCommand(): Command {
  return new Command('restore')
    .description(
      'Fill a new database and a new blob store from a backup, after every byte of it was checked. Nothing is changed ' +
        'where something is there already.',
    )
    .argument('<folder>', 'a folder that the command backup has filled')
    .addHelpText('after', '\nRun it before the server is started on them. Broken off, it can be started again.')
    .action(async (folder: string) => {
      const { manifest, isNew } = await withNewAdminStores(async (stores) => await restoreBackup(stores, folder))
      const outcome = isNew ? 'is restored' : 'was restored here before, and nothing was changed'
      say(`The backup of ${manifest.made_at} ${outcome}: ${describeContents(manifest)}. The server can be started.`)
    })
}

function describeContents({ tables, blobs }: Manifest): string {
  const rowCount = tables.reduce((sum, table) => sum + table.row_count, 0)
  return `${rowCount} rows of ${tables.length} tables, ${blobs.count} blobs (${blobs.size_bytes} bytes)`
}
