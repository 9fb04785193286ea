import { buildS3Server } from '../../../apps/server/test/support/build-s3-server.ts'
import { runS3Server, type S3Server } from '../../../apps/server/test/support/run-s3-server.ts'
import { atTheEnd } from '../../closing.ts'
import { loseBlobs } from '../lose-blobs.ts'
import type { Report, Scenario } from '../scenario.ts'
import { openWorld } from '../world.ts'

type Failure = Record<'fail' | 'heal', (bucket: S3Server) => Promise<void> | void>

async function goWithout(report: Report, { fail, heal }: Failure): Promise<void> {
  const build = await buildS3Server()
  if ('missing' in build) return report.skip(build.missing)
  const bucket = await runS3Server(build.program)
  atTheEnd(bucket.remove)
  const world = await openWorld({ GODWIT_BLOBS: bucket.newBlobsSetting(), ...bucket.credentials })
  // A device is sent to the bucket itself: whether that answers is not ours to say.
  await loseBlobs(report, world, { fail: async () => fail(bucket), heal: async () => heal(bucket) })
}

export const bucketGone: Scenario[] = [
  {
    name: 'bucket-killed',
    title: 'the S3 server is killed',
    run: (report) => goWithout(report, { fail: (bucket) => bucket.kill(), heal: (bucket) => bucket.start() }),
  },
  {
    name: 'bucket-silent',
    title: 'the S3 server takes connections, and answers nothing (SIGSTOP)',
    run: (report) => goWithout(report, { fail: (bucket) => bucket.pause(), heal: (bucket) => bucket.resume() }),
  },
]
