import { type Activity, clientIdLength, type Kind, kinds, type Plan, writeClientId } from './activity.ts'

const blockBytes = 256 * 1024
const maxLineBytes = 512
const patchLimit = 16

/** How a line is made of bytes: what is the same for all of a kind is copied, the time is made once a second. */
type Format = {
  writeDevice: (target: Buffer, offset: number, device: number) => number
  describe: (kind: Kind, patch: number) => string
  formatTime: (unixSeconds: number) => string
}

/** Of the import of the metrics. */
export function createImportFormat({ seed }: Plan): Format {
  const head = Buffer.from('{"client_id":"')
  return {
    writeDevice: (target, offset, device) => {
      target.set(head, offset)
      writeClientId(target, offset + head.length, seed, device)
      return offset + head.length + clientIdLength
    },
    describe: ({ platform, arch, release }, patch) => {
      const text = JSON.stringify({
        platform,
        arch,
        release_version: release.version,
        patch_number: patch === 0 ? null : patch,
      })
      return `",${text.slice(1, -1)},"time":"`
    },
    formatTime: (unixSeconds) => `${new Date(unixSeconds * 1000).toISOString()}"}\n`,
  }
}

/** Rows for a database: device, platform, release, patch, time. */
export function createRowFormat(): Format {
  return {
    writeDevice: (target, offset, device) => offset + target.write(String(device), offset, 'latin1'),
    describe: ({ platform, release }, patch) => `,${platform},${release.version},${patch},`,
    formatTime: (unixSeconds) => `${new Date(unixSeconds * 1000).toISOString().slice(0, 19)}\n`,
  }
}

/** The lines of a day, in blocks. */
export function* encodeDay(activity: Activity, day: number, plan: Plan, format: Format): Generator<Buffer> {
  const descriptions = kinds.map((kind) =>
    Array.from({ length: patchLimit }, (_, patch) => Buffer.from(format.describe(kind, patch))),
  )
  let block = Buffer.allocUnsafe(blockBytes)
  let used = 0
  let second = -1
  let time = Buffer.alloc(0)
  const write = (device: number, atSeconds: number, patch: number): boolean => {
    if (atSeconds !== second) time = Buffer.from(format.formatTime(plan.startSeconds + atSeconds))
    second = atSeconds
    used = format.writeDevice(block, used, device)
    const description = descriptions[activity.kindOf(device)]?.[patch]
    if (description === undefined) throw new RangeError(`there is no patch ${patch}`)
    block.set(description, used)
    used += description.length
    block.set(time, used)
    used += time.length
    return used < blockBytes - maxLineBytes
  }
  let isMore = true
  while (isMore) {
    isMore = activity.play(day, write)
    if (used > 0) yield block.subarray(0, used)
    block = Buffer.allocUnsafe(blockBytes)
    used = 0
  }
}
