import { connect, type Socket } from 'node:net'

/**
 * The load generator, a process of its own. Written on raw sockets: an HTTP client costs more than the server that it
 * measures. It knows one kind of answer, a 200 of always the same length, and fails on any other.
 */
export type Round = {
  port: number
  connection: 'kept alive' | 'new'
  connections: number
  durationMs: number
  maxChecks: number
  /** The bodies to send, in turn. */
  bodies: string[]
  /** Sleeps while it waits for answers, as most load generators do, and leaves what it does not need of a core to others. */
  sleeps?: boolean
}
export type Outcome = { checks: number; seconds: number; p50Ms: number; p99Ms: number }

/** A check that is not answered in this time ends the run: something is broken, and no figure would mean anything. */
const stuckMs = 10_000

async function run(round: Round): Promise<Outcome> {
  const requests = round.bodies.map((body) => encodeRequest(round, body))
  const latencies = new Float64Array(round.maxChecks)
  const startedAt = performance.now()
  let started = 0
  let checks = 0
  /** The next request, while there is one to send. */
  const take = () => {
    if (started === round.maxChecks || performance.now() - startedAt > round.durationMs) return undefined
    started += 1
    return requests[started % requests.length]
  }
  const record = (latencyMs: number) => {
    latencies[checks] = latencyMs
    checks += 1
  }
  const stopSpinning = round.sleeps === true ? () => {} : keepAwake()
  const lanes = Array.from({ length: round.connections }, async () => {
    if (round.connection === 'kept alive') return await converse(round.port, take, record)
    for (let request = take(); request !== undefined; request = take()) {
      let next: Buffer | undefined = request
      const takeOnce = () => {
        const taken = next
        next = undefined
        return taken
      }
      await converse(round.port, takeOnce, record)
    }
  })
  await Promise.all(lanes).finally(stopSpinning)
  const sorted = latencies.subarray(0, checks).sort()
  return {
    checks,
    seconds: (performance.now() - startedAt) / 1000,
    p50Ms: sorted[Math.floor(checks * 0.5)] ?? 0,
    p99Ms: sorted[Math.floor(checks * 0.99)] ?? 0,
  }
}

/** Sends what `take` gives on one connection, one after the other, and resolves when that is closed. */
function converse(port: number, take: () => Buffer | undefined, record: (latencyMs: number) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    let sentAt = performance.now()
    let received = 0
    const socket: Socket = connect({ port, host: '127.0.0.1', noDelay: true }, () => send())
    const send = () => {
      const request = take()
      if (request === undefined) socket.end()
      else socket.write(request)
    }
    socket.setTimeout(stuckMs, () => socket.destroy(new Error('a check was not answered')))
    socket.on('error', reject)
    socket.on('close', () => resolve())
    socket.on('data', (chunk: Buffer) => {
      if (received === 0 && chunk.toString('latin1', 0, 13) !== 'HTTP/1.1 200 ') {
        socket.destroy(new Error(`not a 200: ${chunk}`))
        return
      }
      answerBytes ??= measureAnswer(chunk)
      received += chunk.length
      if (received < answerBytes) return
      if (received > answerBytes) socket.destroy(new Error('an answer was longer than the first one'))
      const now = performance.now()
      record(now - sentAt)
      sentAt = now
      received = 0
      send()
    })
  })
}

/** Of the first answer of the round, which all others must equal. */
let answerBytes: number | undefined

function measureAnswer(chunk: Buffer): number {
  const head = chunk.toString('latin1', 0, chunk.indexOf('\r\n\r\n') + 4)
  return head.length + Number(/content-length: (\d+)/i.exec(head)?.[1])
}

/**
 * Where the server closes the connection, the client's port is free at once. Where the client does, it stays taken for a
 * while, which caps new connections at 14,000 a second.
 */
function encodeRequest({ port, connection }: Round, body: string): Buffer {
  const headers = [
    'POST /api/v1/patches/check HTTP/1.1',
    `Host: 127.0.0.1:${port}`,
    'Accept: */*',
    'User-Agent: ureq/3.3.0',
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    `Connection: ${connection === 'new' ? 'close' : 'keep-alive'}`,
  ]
  return Buffer.from(`${headers.join('\r\n')}\r\n\r\n${body}`)
}

/**
 * Never sleeps while it measures: to wake a process costs whoever sends to it 2 to 4 µs, more often the slower it is. A
 * device on a network costs the server nothing of the kind.
 */
function keepAwake(): () => void {
  let isOver = false
  const spin = () => {
    if (!isOver) setImmediate(spin)
  }
  spin()
  return () => {
    isOver = true
  }
}

process.on('message', (round: Round) => {
  answerBytes = undefined
  run(round).then(
    (outcome) => process.send?.(outcome),
    (error: unknown) => {
      console.error(error)
      process.exit(1)
    },
  )
})
