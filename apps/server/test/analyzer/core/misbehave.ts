import { spawnSync } from 'node:child_process'
import { closeSync, readFileSync, writeFileSync, writeSync } from 'node:fs'
import { isMainThread, Worker } from 'node:worker_threads'
import type { AnalyzedApp } from '../../../src/analyzer/app-facts.ts'
import type { ByteSource } from '../../../src/analyzer/archive.ts'
import { type Answer, encodeAnswer, encodeRead } from '../../../src/analyzer/messages.ts'
import { runAsChild } from '../../../src/analyzer/run-as-child.ts'

/** An analysis that does what its archive says: a JSON text, `{ "do": …, … }`. */
const facts: AnalyzedApp = {
  platform: 'android',
  displayName: 'App',
  packageName: 'com.example.app',
  minSdkVersion: '21',
  targetSdkVersion: '34',
  architectures: ['arm64-v8a'],
}

async function misbehave(source: ByteSource): Promise<AnalyzedApp> {
  const text = (await source.read(0, Math.min(source.sizeBytes, 131_072))).toString()
  const order: Order = JSON.parse(text.split('\n')[0] ?? '')
  const action = actions[order.do]
  if (action === undefined) throw new Error(`no such order: ${order.do}`)
  return { ...facts, ...(await action(source, order)) }
}

/** What an action needs of it is there. */
type Order = {
  do: string
  facts: Partial<AnalyzedApp>
  answer: Answer
  signal: NodeJS.Signals
  bytes: string
  start: string
  sizeBytes: number
  offset: number
  length: number
}

type Action = (source: ByteSource, order: Order) => Promise<Partial<AnalyzedApp> | undefined>

const forever = () => new Promise<never>(() => setInterval(() => undefined, 1000))

const actions: Record<string, Action> = {
  nothing: async () => undefined,
  answer: async (_source, { facts }) => facts,
  icon: async (_source, { sizeBytes, start }) => ({
    icon: Buffer.concat([Buffer.from(start, 'hex'), Buffer.alloc(sizeBytes)]),
  }),
  'allocate outside of the heap': async () => {
    const kept: Buffer[] = []
    for (;;) kept.push(Buffer.alloc(16 * 1024 ** 2, 1))
  },
  'allocate in the heap': async () => {
    const kept: unknown[] = []
    for (;;) kept.push({ index: kept.length, text: `${kept.length}` })
  },
  spin: async () => {
    for (;;) Math.random()
  },
  wait: forever,
  exit: async () => process.exit(0),
  throw: async () => {
    throw new TypeError('a mistake of ours')
  },
  'overflow the stack': async () => {
    const descend = (depth: number): number => 1 + descend(depth + 1)
    return { minSdkVersion: String(descend(0)) }
  },
  signal: async (_source, { signal }) => {
    process.kill(process.pid, signal)
    return await forever()
  },
  send: async (_source, { bytes }) => {
    send(Buffer.from(bytes, 'hex'))
    return await forever()
  },
  'send for ever': async () => {
    send(Buffer.from([0xff, 0xff, 0x03, 0x00]))
    for (;;) send(Buffer.alloc(65_536, 1))
  },
  'send an answer': async (_source, { answer }) => {
    sendFrame(encodeAnswer(answer, undefined))
    return await forever()
  },
  read: async (_source, { offset, length }) => {
    sendFrame(encodeRead(offset, length))
    return await forever()
  },
  'read for ever': async (source, { length }) => {
    for (;;) await source.read(0, length)
  },
  'ask for ever': async () => {
    for (;;) sendFrame(encodeRead(0, 1))
  },
  'hang up': async () => {
    closeSync(channel)
    return await forever()
  },
  'complain for ever': async () => {
    for (;;) await new Promise((resolve) => process.stderr.write('it is all too much\n'.repeat(1000), resolve))
  },
  escape: async () => ({ architectures: await tryToEscape() }),
}

const channel = 3

function sendFrame(content: Buffer): void {
  const length = Buffer.alloc(4)
  length.writeUInt32LE(content.length)
  send(Buffer.concat([length, content]))
}

/** Past the socket that the process has for it, which is not told to wait. */
function send(bytes: Buffer): void {
  for (let sent = 0; sent < bytes.length; ) {
    try {
      sent += writeSync(channel, bytes, sent)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error
    }
  }
}

/** What of the machine it gets at. */
async function tryToEscape(): Promise<string[]> {
  const found = Object.keys(process.env).map((name) => `variable ${name}`)
  const attempts: Record<string, () => unknown> = {
    'reads a file': () => readFileSync('/etc/hosts'),
    'reads its command line': () => readFileSync('/proc/self/cmdline'),
    'reads the package of the project': () => readFileSync(new URL('../../../../../package.json', import.meta.url)),
    'writes a file': () => writeFileSync('/tmp/godwit-analyzer-escaped', 'here'),
    'writes among its code': () => writeFileSync(new URL('./escaped', import.meta.url), 'here'),
    'starts a program': () => {
      const { error } = spawnSync(process.execPath, ['--version'])
      if (error) throw error
    },
    'starts a thread': () => new Worker(new URL(import.meta.url)).unref(),
  }
  for (const [name, attempt] of Object.entries(attempts)) {
    try {
      attempt()
      found.push(name)
    } catch {
      // As it should be.
    }
  }
  return found
}

if (isMainThread) await runAsChild(misbehave)
