import { join } from 'node:path'
import { loseBlobs } from '../lose-blobs.ts'
import type { Report, Scenario } from '../scenario.ts'
import { canMount, mountSmallDisk, type SmallDisk } from '../small-disk.ts'
import { makeFolder, openWorld } from '../world.ts'

type Failure = Record<'fail' | 'heal', (disk: SmallDisk) => Promise<void>> & { downloads: number[] }

async function goWithout(report: Report, { fail, heal, downloads }: Failure): Promise<void> {
  if (!canMount()) return report.skip('only root may mount a disk that can go away')
  const disk = await mountSmallDisk(join(await makeFolder(), 'blobs'), 64)
  const world = await openWorld({ GODWIT_BLOBS: `file:${disk.folder}` })
  await loseBlobs(report, world, { fail: () => fail(disk), heal: () => heal(disk), downloads })
}

export const blobDisk: Scenario[] = [
  {
    name: 'blobs-read-only',
    title: 'the disk of the blobs becomes read-only',
    run: (report) =>
      goWithout(report, {
        fail: (disk) => disk.setReadOnly(true),
        heal: (disk) => disk.setReadOnly(false),
        downloads: [200],
      }),
  },
  {
    name: 'blobs-detached',
    title: 'the disk of the blobs is detached: its folder is empty',
    run: (report) =>
      goWithout(report, { fail: (disk) => disk.detach(), heal: (disk) => disk.attach(), downloads: [200, 503] }),
  },
]
