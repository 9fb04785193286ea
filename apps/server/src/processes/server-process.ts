import type { Registry } from 'prom-client'
import { createLog } from '../create-log.ts'
import { openService, type Service } from '../open-service.ts'
import { describeFailure } from '../welcome.ts'
import type { FromServer, ToServer } from './messages.ts'

/** One of the processes that share the port. It does what the first process says, and ends when that is gone. */
let opening: Promise<Service> | undefined
const waiting = new AbortController()
const wanted = new Map<number, (text: string) => void>()
let registry: Registry | undefined

process.on('message', (message: ToServer) => {
  if ('start' in message) void start(message.start)
  else if ('stop' in message) void stop()
  else if ('cut' in message) opening?.then(({ cut }) => cut()).catch(() => undefined)
  else if ('measure' in message) void measure(message.measure)
  else wanted.get(message.figures)?.(message.text)
})
process.on('disconnect', () => process.exit(1))
// Ctrl-C reaches every process of a terminal; the first one passes it on in its own way.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => undefined)

function send(message: FromServer, onSent = () => {}): void {
  process.send?.(message, undefined, undefined, onSent)
}

async function start({ config, connectionString, number }: Extract<ToServer, { start: object }>['start']) {
  const log = createLog(config.logLevel, { process: number })
  try {
    opening = openService({
      config,
      log,
      connectionString,
      signal: waiting.signal,
      sharesPort: true,
      onRegistry: (own) => {
        own.setDefaultLabels({ process: String(number) })
        registry = own
      },
      collectFigures,
    })
    const { firstAccount } = await opening
    send({ ready: { firstAccount } })
  } catch (error) {
    send({ failed: describeFailure(error) }, () => process.exit(1))
  }
}

async function stop(): Promise<void> {
  waiting.abort(new Error('told to stop'))
  const service = await opening?.catch(() => undefined)
  await service?.close()
  process.exit()
}

async function measure(id: number): Promise<void> {
  const metrics = await registry?.getMetricsAsJSON().catch(() => undefined)
  send({ measured: id, metrics: metrics ?? [] })
}

let lastWanted = 0

/** Of all processes, by the first one. */
function collectFigures(): Promise<string> {
  lastWanted += 1
  const id = lastWanted
  send({ wanted: id })
  return new Promise((resolve) => {
    wanted.set(id, (text) => {
      wanted.delete(id)
      resolve(text)
    })
  })
}
