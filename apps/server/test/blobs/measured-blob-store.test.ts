import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createDiskBlobStore } from '../../src/blobs/disk-blob-store.ts'
import { type MeasuredBlobStore, measureBlobStore } from '../../src/blobs/measured-blob-store.ts'

const key = 'ab'.repeat(8)
let dir: string
let blobs: MeasuredBlobStore

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'godwit-blobs-'))
  blobs = measureBlobStore(await createDiskBlobStore({ dir }))
})
afterAll(() => rm(dir, { recursive: true }))

function read(operation: string) {
  const found = blobs.measure().operations.find((measures) => measures.operation === operation)
  const { counts = [], sum = 0 } = found?.durations.read() ?? {}
  return { times: counts.reduce((total, count) => total + count, 0), errors: found?.errors, seconds: sum }
}

async function startReading(range: { start: number; end: number }) {
  const found = await blobs.find(key)
  if (found === undefined) throw new Error('the blob is not there')
  return await found.read(range)
}

async function* slowSource() {
  yield Buffer.from('first')
  await sleep(300)
  yield Buffer.from('second')
}

it('gives the bytes on as they are, counts them, and does not blame the store for a slow source', async () => {
  expect(await blobs.write(key, { offset: 0, parts: [], source: slowSource() })).toMatchObject({ writtenBytes: 11 })
  await blobs.finish(key, { sizeBytes: 11, sha256: '', parts: [] })
  expect(await buffer(await startReading({ start: 1, end: 9 }))).toEqual(Buffer.from('irstsecon'))
  expect(blobs.measure()).toMatchObject({ readBytes: 9, writtenBytes: 11 })
  expect(read('write')).toMatchObject({ times: 1, errors: 0, seconds: expect.toSatisfy((value) => value < 0.3) })
  expect(read('finish')).toMatchObject({ times: 1, errors: 0 })
  await expect.poll(() => read('read')).toMatchObject({ times: 1, errors: 0 })
})

it('counts what the store fails at, and tells the caller', async () => {
  const gone = 'ab'.repeat(10)
  await blobs.write(gone, { offset: 0, parts: [], source: slowSource() })
  await blobs.finish(gone, { sizeBytes: 11, sha256: '', parts: [] })
  const found = await blobs.find(gone)
  await blobs.remove(gone)
  await expect(found?.read({ start: 0, end: 1 })).rejects.toThrow('ENOENT')
  await expect(blobs.finish('cd'.repeat(8), { sizeBytes: 5, sha256: '', parts: [] })).rejects.toThrow('instead of 5')
  await expect.poll(() => read('read')).toMatchObject({ times: 2, errors: 1 })
  expect(read('finish')).toMatchObject({ times: 3, errors: 1 })
})

it('counts neither a source that breaks off nor a reader that goes away as an error', async () => {
  const before = [read('write'), read('read')]
  const brokenSource = async function* () {
    yield Buffer.from('ab')
    throw new Error('the client is gone')
  }
  const written = await blobs.write('ef'.repeat(8), { offset: 0, parts: [], source: brokenSource() })
  expect(written).toMatchObject({ writtenBytes: 2, failure: new Error('the client is gone') })
  const reading = await startReading({ start: 0, end: 10 })
  reading.destroy()
  await expect.poll(() => read('read').times).toBe((before[1]?.times ?? 0) + 1)
  expect([read('write').errors, read('read').errors]).toEqual(before.map(({ errors }) => errors))
})
