import { fillRoom, type ZipInput } from '../../apps/server/test/analyzer/core/build-zip.ts'
import type { Sample } from '../../apps/server/test/analyzer/core/sample-archives.ts'

const mb = 1024 ** 2
const largeFiles = 12
const smallFiles = 3000

/**
 * The files of an app, made as large as the archive is to be: a dozen large files, of bytes that are made when they are
 * read, 3,000 small ones, and those that matter far apart between them. Real archives are kinder, where what matters lies
 * together.
 */
export function* enlarge(samples: Sample[], sizeBytes: number): Generator<ZipInput> {
  const count = Math.max(largeFiles, samples.length)
  const large = Math.floor((sizeBytes - smallFiles * small.length) / count)
  for (let index = 0; index < count; index++) {
    yield { name: `assets/large/${index}.bin`, content: fillRoom(large) }
    for (let number = index; number < smallFiles; number += count) {
      yield { name: `assets/small/${number}.json`, content: small, method: 0 }
    }
    const sample = samples[index]
    if (sample !== undefined) yield sample
  }
}

const small = Buffer.alloc(700, '{"text":"of an asset"}')

export const sizes = [10, 200, 2000].map((megabytes) => ({ megabytes, sizeBytes: megabytes * mb }))
