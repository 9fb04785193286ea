import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import type { Logger } from 'pino'
import { appChangedChannel } from './app-changes.ts'

const firstRetryMs = 100
const lastRetryMs = 5000

export type AppChangeListener = {
  /** Resolves after the first attempt to connect, whatever came of it: it is repeated for as long as it takes. */
  start: () => Promise<void>
  stop: () => Promise<void>
}

type Options = {
  connectionString: string
  log: Logger
  /** Version 0: the app is gone. */
  onChange: (appId: string, version: number) => void
  /** Whatever was notified while there was no connection has been missed. */
  onConnected: () => void
}

/** Hears what other instances tell, on a connection of its own: one of the pool would not stay, and LISTEN ends with it. */
export function createAppChangeListener(options: Options): AppChangeListener {
  const { connectionString, log } = options
  const stopping = new AbortController()
  let client: pg.Client | undefined
  let running: Promise<void> | undefined

  const keepListening = async (onAttempted: () => void) => {
    let retryMs = firstRetryMs
    while (!stopping.signal.aborted) {
      client = new pg.Client({ connectionString, connectionTimeoutMillis: 5000, keepAlive: true })
      try {
        await startListening(client, options)
        retryMs = firstRetryMs
        options.onConnected()
        onAttempted()
        if (!stopping.signal.aborted) await endOf(client)
        if (!stopping.signal.aborted) log.warn('the connection that tells of changed apps was lost')
      } catch (error) {
        log.warn({ err: error, retryMs }, 'cannot listen for changed apps')
        onAttempted()
      }
      await closeQuietly(client)
      await sleep(retryMs, undefined, { signal: stopping.signal }).catch(() => undefined)
      retryMs = Math.min(retryMs * 2, lastRetryMs)
    }
  }
  return {
    start: () =>
      new Promise((resolve) => {
        running = keepListening(resolve)
      }),
    stop: async () => {
      stopping.abort()
      if (client !== undefined) await closeQuietly(client)
      await running
    },
  }
}

async function startListening(client: pg.Client, { onChange }: Options): Promise<void> {
  // Without a listener the loss of the connection would end the process.
  client.on('error', () => undefined)
  client.on('notification', ({ payload = '' }) => {
    const [, version, appId] = /^(\d{1,15}):(.+)$/.exec(payload) ?? []
    if (version !== undefined && appId !== undefined) onChange(appId, Number(version))
  })
  await client.connect()
  await client.query(`listen ${appChangedChannel}`)
}

function endOf(client: pg.Client): Promise<void> {
  return new Promise((resolve) => client.once('end', resolve))
}

/** The connection is lost or not wanted any more: nothing depends on whether closing it works. */
async function closeQuietly(client: pg.Client): Promise<void> {
  await client.end().catch(() => undefined)
}
