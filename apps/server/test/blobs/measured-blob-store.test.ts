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

async function* slowSource() {
  yield Buffer.from('first')
  await sleep(300)
  yield Buffer.from('second')
}

it('gives the bytes on as they are, counts them, and does not blame the store for a slow source', async () => {
  expect(await blobs.write(key, { offset: 0, source: slowSource() })).toMatchObject({ writtenBytes: 11 })
  await blobs.finish(key, 11)
  expect(await buffer(blobs.read(key, { start: 1, end: 9 }))).toEqual(Buffer.from('irstsecon'))
  expect(blobs.measure()).toMatchObject({ readBytes: 9, writtenBytes: 11 })
  expect(read('write')).toMatchObject({ times: 1, errors: 0, seconds: expect.toSatisfy((value) => value < 0.3) })
  expect(read('finish')).toMatchObject({ times: 1, errors: 0 })
  await expect.poll(() => read('read')).toMatchObject({ times: 1, errors: 0 })
})

it('counts what the store fails at, and tells the caller', async () => {
  await expect(buffer(blobs.read('cd'.repeat(8), { start: 0, end: 1 }))).rejects.toThrow('ENOENT')
  await expect(blobs.finish('cd'.repeat(8), 5)).rejects.toThrow('instead of 5')
  await expect.poll(() => read('read')).toMatchObject({ times: 2, errors: 1 })
  expect(read('finish')).toMatchObject({ times: 2, errors: 1 })
})

it('counts neither a source that breaks off nor a reader that goes away as an error', async () => {
  const before = [read('write'), read('read')]
  const brokenSource = async function* () {
    yield Buffer.from('ab')
    throw new Error('the client is gone')
  }
  const written = await blobs.write('ef'.repeat(8), { offset: 0, source: brokenSource() })
  expect(written).toMatchObject({ writtenBytes: 2, failure: new Error('the client is gone') })
  const reading = blobs.read(key, { start: 0, end: 10 })
  reading.destroy()
  await expect.poll(() => read('read').times).toBe((before[1]?.times ?? 0) + 1)
  expect([read('write').errors, read('read').errors]).toEqual(before.map(({ errors }) => errors))
})
