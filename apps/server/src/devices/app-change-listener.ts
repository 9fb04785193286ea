import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import type { Logger } from 'pino'
import { cutConnection } from '../db/database-health.ts'
import { countsChannel } from '../http/shared-counts.ts'
import { appChangedChannel } from './app-changes.ts'

const firstRetryMs = 100
const lastRetryMs = 5000

/** On the listening connection something is asked this often: a connection that has died in silence tells nothing. */
const heartbeatMs = 400
/** From then on it is not relied on. */
const lateMs = 300
/** It is given up. */
const deadMs = 3000

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
  onCounts: (payload: string) => void
  /** Whatever was notified until now may have been missed. From now on nothing is. */
  onListening: () => void
  /** From now on something may be missed. */
  onDoubt: () => void
}

/** Hears what other instances tell, on a connection of its own: one of the pool would not stay, and LISTEN ends with it. */
export function createAppChangeListener(options: Options): AppChangeListener {
  const { connectionString, log, onListening, onDoubt } = options
  const stopping = new AbortController()
  const { signal } = stopping
  let client: pg.Client | undefined
  let running: Promise<void> | undefined

  const listenOnce = async (onAttempted: () => void, handleSuccess: () => void) => {
    client = new pg.Client({ connectionString, connectionTimeoutMillis: 5000, keepAlive: true })
    await startListening(client, options)
    handleSuccess()
    onListening()
    onAttempted()
    await keepAsking(client, options, signal)
  }
  const keepListening = async (onAttempted: () => void) => {
    let retryMs = firstRetryMs
    const forgetFailures = () => {
      retryMs = firstRetryMs
    }
    while (!signal.aborted) {
      try {
        await listenOnce(onAttempted, forgetFailures)
      } catch (error) {
        if (!signal.aborted) log.warn({ reason: (error as Error).message, retryMs }, 'cannot listen for changed apps')
      }
      onDoubt()
      onAttempted()
      if (client !== undefined) cutConnection(client)
      await sleep(retryMs, undefined, { signal }).catch(() => undefined)
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
      if (client !== undefined) cutConnection(client)
      await running
    },
  }
}

async function startListening(client: pg.Client, { onChange, onCounts }: Options): Promise<void> {
  // Without a listener the loss of the connection would end the process.
  client.on('error', () => undefined)
  client.on('notification', ({ channel, payload = '' }) => {
    if (channel === countsChannel) return onCounts(payload)
    const [, version, appId] = /^(\d{1,15}):(.+)$/.exec(payload) ?? []
    if (version !== undefined && appId !== undefined) onChange(appId, Number(version))
  })
  await client.connect()
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid')
  // LISTEN would seem to work, on a connection that is somebody else's a moment later.
  if (rows[0]?.pid !== (client as { processID?: number }).processID)
    throw new Error('a pooler stands between this server and PostgreSQL: set DATABASE_DIRECT_URL')
  await client.query(`listen ${appChangedChannel}; listen ${countsChannel}`)
}

/** Throws once the connection is lost. */
async function keepAsking(client: pg.Client, { onListening, onDoubt }: Options, signal: AbortSignal): Promise<void> {
  for (;;) {
    await sleep(heartbeatMs, undefined, { signal })
    let isLate = false
    const late = setTimeout(() => {
      isLate = true
      onDoubt()
    }, lateMs)
    const dead = setTimeout(() => cutConnection(client), deadMs)
    try {
      await client.query('select')
    } finally {
      clearTimeout(late)
      clearTimeout(dead)
    }
    if (isLate) onListening()
  }
}
