import { Command, InvalidArgumentError } from 'commander'
import { type BlobsLocation, parseBlobsLocation } from '../blobs/blobs-location.ts'
import { openBlobStore } from '../blobs/open-blob-store.ts'
import { migrateBlobs } from '../transfers/migrate-blobs.ts'
import { withAdminDeps } from './open-admin-deps.ts'
import { say } from './say.ts'

export function migrateBlobsCommand(): Command {
  return new Command('migrate-blobs')
    .description(
      'Copy every artifact from one blob store to another, while the server runs, and verify its SHA-256. What is there ' +
        'already is not copied again: run it as often as needed.',
    )
    .requiredOption('--from <place>', 'as GODWIT_BLOBS says it', checkPlace)
    .requiredOption('--to <place>', 'as GODWIT_BLOBS says it', checkPlace)
    .action(async (options: { from: string; to: string }) => {
      const { copied, present, failures } = await withAdminDeps(async ({ config, db }) => {
        const open = async (place: string) => await openBlobStore(toLocation(place, config.dataDir), config.downloads)
        return await migrateBlobs({ db, from: await open(options.from), to: await open(options.to) })
      })
      say(`${copied} blobs were copied, ${present} were there already, ${failures.length} could not be copied.`)
      for (const failure of failures) say(failure)
      if (failures.length > 0) process.exitCode = 1
      else say(describeNext(options))
    })
}

function describeNext({ from, to }: { from: string; to: string }): string {
  return (
    `Next: restart the server with GODWIT_BLOBS=${to} and GODWIT_BLOBS_FALLBACK=${from}, run this command again for what ` +
    'arrived meanwhile, then restart without GODWIT_BLOBS_FALLBACK. The blobs in the old place may then be deleted.'
  )
}

function toLocation(place: string, dataDir: string): BlobsLocation {
  return parseBlobsLocation(place, dataDir)
}

function checkPlace(place: string): string {
  try {
    parseBlobsLocation(place, '')
    return place
  } catch (error) {
    throw new InvalidArgumentError((error as Error).message)
  }
}
