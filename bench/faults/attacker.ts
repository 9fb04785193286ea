import { randomUUID } from 'node:crypto'
import { Agent, request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { setPriority } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import type { PatchCheckRequest } from '@godwit/contract'

export type Attack = 'slow-loris' | 'half-open' | 'idle' | 'trickle' | 'random-apps' | 'one-client' | 'invalid-tokens'

/** `check`: one that is answered with an offer. */
export type AttackTask = { attack: Attack; port: number; check: PatchCheckRequest }

/** How many connections are open at once. */
const connections: Record<Attack, number> = {
  'slow-loris': 2000,
  'half-open': 2000,
  idle: 10_000,
  trickle: 1000,
  'random-apps': 100,
  'one-client': 100,
  'invalid-tokens': 50,
}
const trickleMs = 500
/** Faster than this, the kernel's queue of connections that wait to be accepted would be what is measured. */
const openedAtOnce = 100

/** A process of its own at the lowest priority: what the attack costs the attacker must not be what slows the others. */
process.on('message', ({ attack, port, check }: AttackTask) => {
  setPriority(19)
  void Promise.all(Array.from({ length: connections[attack] }, (_, index) => run(attack, port, check, index)))
})

let open = 0
let answers = 0
setInterval(() => process.send?.({ open, answers }), 500)

async function run(attack: Attack, port: number, check: PatchCheckRequest, index: number): Promise<never> {
  await sleep(Math.floor(index / openedAtOnce) * 50)
  for (;;) {
    await perform(attack, port, check).catch(() => undefined)
    await sleep(attack === 'random-apps' || attack === 'one-client' || attack === 'invalid-tokens' ? 0 : 200)
  }
}

async function perform(attack: Attack, port: number, check: PatchCheckRequest): Promise<void> {
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
    case 'one-client':
      return await ask(port, '/api/v1/patches/check', check)
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
