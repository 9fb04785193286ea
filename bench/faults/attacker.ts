import { randomUUID } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { setPriority } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import type { PatchCheckRequest } from '@godwit/contract'

export type Attack =
  | 'slow-loris'
  | 'half-open'
  | 'idle'
  | 'trickle'
  | 'random-apps'
  | 'one-app'
  | 'one-client'
  | 'invalid-tokens'

/** `check`: one that is answered with an offer, but for the client, of which there are many. */
export type AttackTask = {
  attack: Attack
  port: number
  check: Omit<PatchCheckRequest, 'client_id'>
  clientIds: string[]
}

const holding = new Set<Attack>(['slow-loris', 'half-open', 'idle', 'trickle'])
/** How many connections are open at once. */
const connections: Record<Attack, number> = {
  'slow-loris': 2000,
  'half-open': 2000,
  idle: 10_000,
  trickle: 1000,
  'random-apps': 100,
  'one-app': 100,
  'one-client': 100,
  'invalid-tokens': 50,
}
const trickleMs = 500
/** Faster than this, the kernel's queue of connections that wait to be accepted would be what is measured. */
const openedAtOnce = 100

/** A process of its own at the lowest priority: what the attack costs the attacker must not be what slows the others. */
process.on('message', (task: AttackTask) => {
  yieldToOthers()
  void Promise.all(Array.from({ length: connections[task.attack] }, (_, index) => run(task, index)))
})

process.on('disconnect', () => process.exit())

function yieldToOthers(): void {
  setPriority(19)
  try {
    // Where Linux shares the processor by sessions, of which this is one.
    writeFileSync('/proc/self/autogroup', '19')
  } catch {
    // Then the attacked have the less.
  }
}

let open = 0
let answers = 0
setInterval(() => process.send?.({ open, answers }), 500)

async function run(task: AttackTask, index: number): Promise<never> {
  await sleep(Math.floor(index / openedAtOnce) * 50)
  for (;;) {
    await perform(task).catch(() => undefined)
    if (holding.has(task.attack)) await sleep(200)
  }
}

let turns = 0

async function perform({ attack, port, check, clientIds }: AttackTask): Promise<void> {
  turns += 1
  switch (attack) {
    case 'slow-loris':
      // A header that never ends, a line at a time.
      return await hold(port, 'POST /api/v1/patches/check HTTP/1.1\r\nHost: x\r\n', () => `X-${Math.random()}: y\r\n`)
    case 'half-open':
      // The whole header, half of the body, and silence.
      return await hold(
        port,
        'POST /api/v1/patches/check HTTP/1.1\r\nHost: x\r\nContent-Length: 200\r\n\r\n{"app_id":"',
      )
    case 'idle':
      return await hold(port, '')
    case 'trickle':
      return await hold(
        port,
        'POST /api/v1/patches/check HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\n\r\n',
        () => ' ',
      )
    case 'random-apps':
      return await ask(port, '/api/v1/patches/check', { ...check, app_id: randomUUID(), client_id: randomUUID() })
    case 'one-app':
      return await ask(port, '/api/v1/patches/check', { ...check, client_id: clientIds[turns % clientIds.length] })
    case 'one-client':
      return await ask(port, '/api/v1/patches/check', { ...check, client_id: clientIds[0] })
    case 'invalid-tokens':
      return await ask(port, '/api/v1/apps', {}, { authorization: `Bearer sb_api_${randomUUID().repeat(2)}` })
  }
}

/** Keeps a connection, with a piece now and then, until the other end has had enough. */
async function hold(port: number, opening: string, next?: () => string): Promise<void> {
  const socket: Socket = connect({ port, host: '127.0.0.1' })
  socket.on('error', () => undefined)
  socket.on('data', () => undefined)
  socket.on('connect', () => {
    open += 1
    if (opening !== '') socket.write(opening)
  })
  const timer = next === undefined ? undefined : setInterval(() => socket.write(next()), trickleMs)
  await new Promise((resolve) => socket.on('close', resolve))
  if (socket.bytesRead > 0) answers += 1
  if (socket.connecting === false && open > 0) open -= 1
  clearInterval(timer)
}

const agent = new Agent({ keepAlive: true })

function ask(port: number, path: string, body: object, headers: Record<string, string> = {}): Promise<void> {
  const text = JSON.stringify(body)
  const length = { 'content-length': String(Buffer.byteLength(text)) }
  return new Promise((resolve, reject) => {
    const options = { port, host: '127.0.0.1', path, method: 'POST', agent, headers: { ...headers, ...length } }
    const asking = request(options, (response) => {
      response.resume()
      response.on('end', () => {
        answers += 1
        resolve()
      })
    })
    asking.on('error', reject)
    asking.end(text)
  })
}
