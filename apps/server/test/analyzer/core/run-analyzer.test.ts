import { readdirSync, readFileSync } from 'node:fs'
import pino from 'pino'
import { afterAll, describe, expect, it } from 'vitest'
import type { ByteSource } from '../../../src/analyzer/archive.ts'
import { readAnswer } from '../../../src/analyzer/read-answer.ts'
import { createAnalyzer } from '../../../src/analyzer/run-analyzer.ts'
import { type CountingSource, fillRoom, openPieces } from './build-zip.ts'

const mb = 1024 ** 2
const logged: { level: number; msg: string; errorText?: string }[] = []
const log = pino({ level: 'debug' }, { write: (line) => void logged.push(JSON.parse(line)) })
const script = new URL('./misbehave.ts', import.meta.url)
const analyzer = createAnalyzer({ log, script })
const shortMs = 1200
const hasty = createAnalyzer({ log, script, timeoutMs: shortMs })
const png = '89504e470d0a1a0a'

afterAll(() => Promise.all([analyzer.stop(), hasty.stop()]))

describe('the process of an analysis', () => {
  it('gives what it found, with its icon', async () => {
    const outcome = await order({ do: 'icon', start: png, sizeBytes: 100_000 })
    expect(outcome).toMatchObject({ kind: 'analyzed', facts: { displayName: 'App', architectures: ['arm64-v8a'] } })
    expect(outcome.kind === 'analyzed' && outcome.facts.icon?.length).toBe(100_008)
    expect(await order({ do: 'nothing' })).not.toHaveProperty('facts.icon')
  })

  it('leaves an icon out that is larger than icons are', async () => {
    const outcome = await order({ do: 'icon', start: png, sizeBytes: 20 * mb })
    expect(outcome).toMatchObject({ kind: 'analyzed', facts: { displayName: 'App' } })
    expect(outcome).not.toHaveProperty('facts.icon')
  })

  it.runIf(process.platform === 'linux')('gets at nothing of the machine', async () => {
    expect(await order({ do: 'escape' })).toMatchObject({ kind: 'analyzed', facts: { architectures: [] } })
  })

  it.each(['allocate outside of the heap', 'allocate in the heap'])(
    'that tries to %s costs nothing but itself',
    async (it) => {
      expect(await order({ do: it })).toMatchObject({ kind: 'unanalyzable', problem: 'limit_exceeded' })
      await expectNothingLeft()
    },
  )

  it('that goes on for ever is ended', async () => {
    const startedAt = performance.now()
    const outcomes = await Promise.all(['spin', 'wait', 'hang up'].map((it) => order({ do: it }, hasty)))
    for (const outcome of outcomes) expect(outcome).toMatchObject({ kind: 'unanalyzable', problem: 'limit_exceeded' })
    expect(performance.now() - startedAt).toBeLessThan(shortMs + 2000)
    await expectNothingLeft()
  })

  it.each(['SIGSEGV', 'SIGABRT', 'SIGXCPU'])('that ends with %s is the fault of the archive', async (signal) => {
    const outcome = await order({ do: 'signal', signal })
    expect(outcome).toEqual({
      kind: 'unanalyzable',
      problem: 'limit_exceeded',
      detail: expect.stringContaining(signal),
    })
    await expectNothingLeft()
  })

  it('that someone kills is nobody’s fault, and may be tried again', async () => {
    for (const signal of ['SIGKILL', 'SIGTERM']) {
      const outcome = await order({ do: 'signal', signal })
      expect(outcome).toEqual({ kind: 'failed', reason: expect.stringContaining(signal) })
    }
  })

  it('that makes a mistake of ours is not the fault of the archive', async () => {
    expect(await order({ do: 'throw' })).toEqual({
      kind: 'failed',
      reason: expect.stringContaining('a mistake of ours'),
    })
    expect(await order({ do: 'exit' })).toEqual({ kind: 'failed', reason: expect.stringContaining('code 0') })
    expect(await order({ do: 'overflow the stack' })).toMatchObject({ kind: 'failed' })
  })

  it('is ended for a message that is none', async () => {
    const frames = {
      'no kind': '0100000007',
      'an empty frame': '00000000',
      'a frame of 4 GB': 'ffffffff',
      'a short question': '05000000010000000000',
      'an answer that ends early': '0600000002ffffffff00',
      'an answer without a text': '050000000200000000',
    }
    for (const [name, bytes] of Object.entries(frames)) {
      expect(await order({ do: 'send', bytes }), name).toMatchObject({
        kind: 'unanalyzable',
        problem: 'limit_exceeded',
      })
    }
    expect(await order({ do: 'send for ever' }, hasty)).toMatchObject({ kind: 'unanalyzable' })
    await expectNothingLeft()
  })

  it('is not believed when its answer cannot be', async () => {
    const facts = {
      ...{ platform: 'android', displayName: 'A', packageName: 'a.b' },
      ...{ minSdkVersion: '1', targetSdkVersion: '1', architectures: [] },
    }
    const answer = { kind: 'analyzed', facts }
    const read = (answer: unknown) =>
      readAnswer({ kind: 'answer', text: JSON.stringify(answer), icon: Buffer.alloc(0) })
    expect(read(answer)).toEqual({ kind: 'analyzed', facts })
    const wrong = [
      { ...answer, kind: 'other' },
      { ...answer, facts: { ...facts, platform: 'amiga' } },
      { ...answer, facts: { ...facts, platform: 'symbian' } },
      { ...answer, facts: { ...facts, displayName: '' } },
      { ...answer, facts: { ...facts, displayName: 'x'.repeat(300) } },
      { ...answer, facts: { ...facts, displayName: 'x\u202ey' } },
      { ...answer, facts: { ...facts, packageName: 'x'.repeat(10_000) } },
      { ...answer, facts: { ...facts, packageName: 'a\0b' } },
      { ...answer, facts: { ...facts, minSdkVersion: 21 } },
      { ...answer, facts: { ...facts, architectures: ['x', 'x'] } },
      { ...answer, facts: { ...facts, architectures: Array.from({ length: 100 }, (_, index) => `${index}`) } },
      { kind: 'unanalyzable', problem: 'toString', detail: '' },
      { kind: 'failed', reason: 'x'.repeat(100_000) },
    ]
    for (const answer of wrong) expect(read(answer), JSON.stringify(answer)).toBeUndefined()
    const untrue = { ...answer, facts: { ...facts, displayName: '' } }
    expect(await order({ do: 'send an answer', answer: untrue })).toMatchObject({ kind: 'unanalyzable' })
    expect(await order({ do: 'icon', start: '474946', sizeBytes: 100 })).toMatchObject({ kind: 'unanalyzable' })
  })

  it('reads nothing outside of its archive, and never much at a time', async () => {
    const asked: [number, number][] = []
    const questions = [
      [-1, 4],
      [0.5, 4],
      [4 * mb, 4],
      [4 * mb - 2, 4],
      [2 ** 60, 4],
      [0, 0],
      [0, 2 * mb],
      [0, 2 ** 32 - 1],
    ]
    const outcomes = await inTurn(questions, ([offset, length]) =>
      analyzer.analyze(watch(prepare({ do: 'read', offset, length }, 4 * mb), asked)),
    )
    for (const outcome of outcomes) expect(outcome).toMatchObject({ kind: 'unanalyzable', problem: 'limit_exceeded' })
    expect(asked).toEqual(questions.map(() => [0, 131_072]))
  })

  it('is ended when it reads more than any analysis does', async () => {
    for (const length of [1, mb]) {
      const source = prepare({ do: 'read for ever', length }, 4 * mb)
      expect(await analyzer.analyze(source)).toMatchObject({ kind: 'unanalyzable', problem: 'limit_exceeded' })
      expect(source.reads).toBeLessThanOrEqual(4000)
      expect(source.readBytes).toBeLessThanOrEqual(768 * mb)
    }
  })

  it('has what it complains of logged, but not without end', async () => {
    expect(await order({ do: 'complain for ever' }, hasty)).toMatchObject({ kind: 'unanalyzable' })
    const texts = logged.flatMap(({ errorText }) => errorText ?? [])
    expect(texts.at(-1)).toContain('it is all too much')
    expect(texts.at(-1)?.length).toBeLessThanOrEqual(8192)
  })
})

describe('the server beside it', () => {
  it('says that a source failed, and when it was too slow', async () => {
    const source = prepare({ do: 'read for ever', length: 100 }, mb)
    const failing = (reads: number): ByteSource => {
      let left = reads
      return {
        sizeBytes: source.sizeBytes,
        read: async (offset, length) => {
          if (left-- === 0) throw new Error('the disk is gone')
          return await source.read(offset, length)
        },
      }
    }
    for (const reads of [0, 1, 20]) {
      const outcome = await analyzer.analyze(failing(reads))
      expect(outcome).toEqual({ kind: 'failed', reason: expect.stringContaining('the disk is gone') })
    }
    const slow = { sizeBytes: mb, read: () => new Promise<never>(() => undefined) }
    expect(await hasty.analyze(slow)).toEqual({ kind: 'failed', reason: expect.stringContaining('too slow') })
    const short = { sizeBytes: mb, read: async () => Buffer.alloc(3) }
    expect(await analyzer.analyze(short)).toMatchObject({ kind: 'failed' })
    await expectNothingLeft()
  })

  it('does not grow by what the process does', async () => {
    await order({ do: 'nothing' })
    const before = process.memoryUsage()
    let peak = before.rss
    const watching = setInterval(() => {
      peak = Math.max(peak, process.memoryUsage().rss)
    }, 20)
    await Promise.all([
      order({ do: 'send for ever' }, hasty),
      order({ do: 'ask for ever' }, hasty),
      order({ do: 'complain for ever' }, hasty),
      order({ do: 'allocate outside of the heap' }),
    ])
    clearInterval(watching)
    expect(peak - before.rss).toBeLessThan(60 * mb)
    // What was let go stays until garbage is collected.
    expect(process.memoryUsage().arrayBuffers - before.arrayBuffers).toBeLessThan(40 * mb)
  })

  it('ends an analysis that is aborted', async () => {
    const aborting = new AbortController()
    const outcome = analyzer.analyze(prepare({ do: 'wait' }), aborting.signal)
    setTimeout(() => aborting.abort(), 300)
    expect(await outcome).toEqual({ kind: 'failed', reason: expect.stringContaining('aborted') })
    expect(await analyzer.analyze(prepare({ do: 'nothing' }), AbortSignal.abort())).toMatchObject({ kind: 'failed' })
    await expectNothingLeft()
  })

  it('ends all of them when it stops, and begins none any more', async () => {
    const stopping = createAnalyzer({ log, script })
    const outcomes = [stopping.analyze(prepare({ do: 'wait' })), stopping.analyze(prepare({ do: 'spin' }))]
    await new Promise((resolve) => setTimeout(resolve, 300))
    await stopping.stop()
    await expectNothingLeft()
    expect(await Promise.all(outcomes)).toMatchObject([{ kind: 'failed' }, { kind: 'failed' }])
    expect(await stopping.analyze(prepare({ do: 'nothing' }))).toMatchObject({ kind: 'failed' })
  })

  it('says that the process cannot be started, and does not blame the archive', async () => {
    const missing = createAnalyzer({ log, script: new URL('./no-such-file.ts', import.meta.url) })
    const outcome = await missing.analyze(prepare({ do: 'nothing' }))
    expect(outcome).toEqual({ kind: 'failed', reason: expect.stringContaining('no-such-file') })
  })
})

/** Archives that are orders to the process. */
function prepare(content: Record<string, unknown>, sizeBytes = 4096): CountingSource {
  const text = Buffer.from(`${JSON.stringify(content)}\n`)
  return openPieces([text, fillRoom(sizeBytes - text.length)])
}

async function order(content: Record<string, unknown>, by = analyzer) {
  const sizeBytes = Math.max(4096, JSON.stringify(content).length + 1)
  return await by.analyze(prepare(content, sizeBytes))
}

function watch(source: ByteSource, asked: [number, number][]): ByteSource {
  return {
    sizeBytes: source.sizeBytes,
    read: (offset, length) => {
      asked.push([offset, length])
      return source.read(offset, length)
    },
  }
}

async function inTurn<Input, Output>(inputs: Input[], work: (input: Input) => Promise<Output>): Promise<Output[]> {
  const outputs: Output[] = []
  for (const input of inputs) outputs.push(await work(input))
  return outputs
}

/** No process is left of those that this one started for an analysis, and the next analysis works. */
async function expectNothingLeft(): Promise<void> {
  if (process.platform === 'linux') expect(listChildren()).toEqual([])
  expect(await order({ do: 'nothing' })).toMatchObject({ kind: 'analyzed' })
}

function listChildren(): string[] {
  return readdirSync('/proc').flatMap((pid) => {
    try {
      const [, , rest = ''] = /^\d+ \((.*)\) (.*)/s.exec(readFileSync(`/proc/${pid}/stat`, 'latin1')) ?? []
      const isOurs = rest.split(' ')[1] === String(process.pid)
      const commandLine = isOurs ? readFileSync(`/proc/${pid}/cmdline`, 'latin1') : ''
      return commandLine.includes('misbehave') ? [commandLine] : []
    } catch {
      return []
    }
  })
}
