import { randomBytes, randomUUID } from 'node:crypto'
import { appendFile, mkdtemp, readdir, rm, truncate } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pino from 'pino'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { encodeFrame } from '../../src/activity/frames.ts'
import { openSpool, type Spool } from '../../src/activity/spool.ts'

const limits = { sizeBytes: 10_000, events: 100 }

let dir: string
let emptied: string[]

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'godwit-spool-'))
  emptied = []
})
afterEach(() => rm(dir, { recursive: true }))

function openWriter(writerId: string, maxBytes = 2 ** 30): Promise<Spool> {
  const onEmptied = async (id: string) => void emptied.push(id)
  return openSpool({ dir, writerId, maxBytes, log: pino({ level: 'silent' }), onEmptied })
}

function frameOf(writerId: string, number: number, sizeBytes = 1000): Buffer {
  const segments = [{ appId: 'a', bytes: randomBytes(sizeBytes), count: 1 }]
  return encodeFrame({ writerId, number, segments, events: [] })
}

/** Reads and advances until there is nothing more, tidying on the way. */
async function readAll(spool: Spool): Promise<string[]> {
  const read: string[] = []
  for (;;) {
    while (spool.hasUnread()) {
      const batch = await spool.read(limits)
      read.push(...batch.frames.map(({ writerId, number }) => `${writerId} ${number}`))
      spool.advance(batch)
    }
    if (!spool.hasRead()) return read
    await spool.tidy()
  }
}

describe('the spool', () => {
  it('gives frames back in their order, however large, and then the space', async () => {
    const spool = await openWriter('one')
    await spool.append([frameOf('one', 1), frameOf('one', 2, 100_000)])
    await spool.append([frameOf('one', 3)])
    expect(spool.sizeBytes()).toBeGreaterThan(102_000)
    expect(await readAll(spool)).toEqual(['one 1', 'one 2', 'one 3'])
    expect(spool.sizeBytes()).toBe(0)
    await spool.append([frameOf('one', 4)])
    expect(await readAll(spool)).toEqual(['one 4'])
    await spool.close()
    expect(await readdir(dir)).toEqual([])
  })

  it('leaves what is unread to whoever opens it next, before their own', async () => {
    const first = await openWriter('first')
    await first.append([frameOf('first', 1), frameOf('first', 2)])
    await first.close()
    const second = await openWriter('second')
    expect(second.hasLeft()).toBe(true)
    await second.append([frameOf('second', 1)])
    expect(await readAll(second)).toEqual(['first 1', 'first 2', 'second 1'])
    expect(emptied).toEqual(['first'])
    await second.close()
    expect(await readdir(dir)).toEqual([])
  })

  it('does not touch what belongs to a process that lives', async () => {
    const first = await openWriter('first')
    await first.append([frameOf('first', 1)])
    const second = await openWriter('second')
    expect([second.hasLeft(), second.hasUnread()]).toEqual([false, false])
    await second.close()
    expect(await readAll(first)).toEqual(['first 1'])
    await first.close()
  })

  it('drops what a killed process had not written to its end', async () => {
    const torn = frameOf('first', 3)
    const garbage = Buffer.alloc(1000, 0xff)
    const cut = [1, 7, 8, 11, 12, 500, torn.length - 1].map((length) => torn.subarray(0, length))
    for (const end of [...cut, garbage, Buffer.alloc(5000)]) {
      const first = await openWriter('first')
      await first.append([frameOf('first', 1), frameOf('first', 2)])
      await first.close()
      await appendFile(join(dir, 'first.frames'), end)
      const second = await openWriter(randomUUID())
      expect(await readAll(second)).toEqual(['first 1', 'first 2'])
      await second.close()
      expect(await readdir(dir)).toEqual([])
    }
  })

  it('takes over a file that holds nothing', async () => {
    await appendFile(join(dir, 'first.frames'), '')
    const spool = await openWriter('second')
    expect(await readAll(spool)).toEqual([])
    await spool.close()
    expect(await readdir(dir)).toEqual([])
  })

  it('goes on after its file was cut behind its back', async () => {
    const spool = await openWriter('one')
    await spool.append([frameOf('one', 1), frameOf('one', 2)])
    await truncate(join(dir, 'one.frames'), 1500)
    expect(await readAll(spool)).toEqual(['one 1'])
    await spool.append([frameOf('one', 3)])
    expect(await readAll(spool)).toEqual(['one 3'])
    await spool.close()
  })

  it('takes no more than its limit, and again when there is room', async () => {
    const spool = await openWriter('one', 3000)
    await spool.append([frameOf('one', 1), frameOf('one', 2)])
    await expect(spool.append([frameOf('one', 3)])).rejects.toThrow('limit')
    expect(await readAll(spool)).toEqual(['one 1', 'one 2'])
    await spool.append([frameOf('one', 3)])
    expect(await readAll(spool)).toEqual(['one 3'])
    await spool.close()
  })
})
