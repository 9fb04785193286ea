import { readdir, readFile } from 'node:fs/promises'
import pino from 'pino'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createActivityStore } from '../../src/activity/store/create-activity-store.ts'
import { readConfig } from '../../src/config.ts'
import { readSamples } from '../service/read-metrics.ts'
import { checkOf } from './harness.ts'
import { type ServerWithApp, startServerWithApp } from './server-with-app.ts'

let database: ServerWithApp['database']
let server: ServerWithApp['server']
let appId: string
let remove: ServerWithApp['remove']

beforeAll(async () => {
  ;({ database, server, appId, remove } = await startServerWithApp({ GODWIT_LOG_LEVEL: 'fatal' }))
})
afterAll(() => remove())

/** The processes that count for a server. */
async function listCountingProcesses(parent: number): Promise<number[]> {
  const pids = (await readdir('/proc')).map(Number).filter((pid) => pid > 0)
  const read = (pid: number, file: string) => readFile(`/proc/${pid}/${file}`, 'utf8').catch(() => '')
  const counts = async (pid: number) =>
    (await read(pid, 'cmdline')).includes('activity/store/worker.ts') &&
    (await read(pid, 'status')).includes(`PPid:\t${parent}\n`)
  const found = await Promise.all(pids.map(counts))
  return pids.filter((_, index) => found[index])
}

const patience = { timeout: 20_000 }
const isRunning = async (pid: number) => (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')) !== ''

async function countDevices(): Promise<number> {
  return (await server.api.getVersionDistribution({ params: { appId } })).total_devices
}

describe.runIf(process.platform === 'linux')('the process that counts devices', () => {
  it('is replaced when it was killed, and whoever asks meanwhile is told to ask again', async () => {
    await server.api.checkPatch({ body: checkOf(appId, 1) })
    expect(await countDevices()).toBe(1)
    const [counting = 0] = await listCountingProcesses(server.pid())
    process.kill(counting, 'SIGKILL')
    await expect.poll(() => isRunning(counting), patience).toBe(false)
    await server.api.checkPatch({ body: checkOf(appId, 2) })
    const ask = () => countDevices().catch((error) => error.status)
    const answers = new Set<number>()
    await expect
      .poll(async () => {
        answers.add(await ask())
        return [...answers].at(-1)
      }, patience)
      .toBe(2)
    answers.delete(2)
    expect([...answers]).toSatisfy((others: number[]) => others.every((status) => status === 503))
  })

  it('is told of as late while it hangs', async () => {
    const lag = async () => (await readSamples(server.baseUrl)).godwit_activity_lag_seconds
    const [counting = 0] = await listCountingProcesses(server.pid())
    await expect.poll(lag, patience).toBeLessThan(3)
    process.kill(counting, 'SIGSTOP')
    await expect.poll(lag, patience).toBeGreaterThan(4)
    process.kill(counting, 'SIGCONT')
    await expect.poll(lag, patience).toBeLessThan(3)
  })

  it('goes on counting when only it is told to stop, and ends with the service', async () => {
    const [counting = 0] = await listCountingProcesses(server.pid())
    process.kill(counting, 'SIGTERM')
    process.kill(counting, 'SIGINT')
    await server.api.checkPatch({ body: checkOf(appId, 3) })
    expect(await countDevices()).toBe(3)
    expect(await listCountingProcesses(server.pid())).toEqual([counting])
    await server.kill()
    await expect.poll(() => isRunning(counting), patience).toBe(false)
  })

  it('does not keep the service from stopping when it hangs', async () => {
    await server.start()
    await countDevices()
    const [counting = 0] = await listCountingProcesses(server.pid())
    process.kill(counting, 'SIGSTOP')
    server.signal('SIGTERM')
    expect(await server.exited()).toBe(0)
    await expect.poll(() => isRunning(counting), patience).toBe(false)
  })

  it('ends when only questions have started it and none has come for a while, until the next one', async () => {
    const openStore = () =>
      createActivityStore({
        connectionString: database.connectionString,
        config: readConfig({}),
        clock: () => new Date(),
        log: pino({ level: 'silent' }),
        idleMs: 1000,
      })
    const [compacting, asked] = [openStore(), openStore()]
    const question = { appId, sinceMs: 0 }
    try {
      compacting.start()
      const versions = await compacting.countVersions(question)
      const [kept] = await listCountingProcesses(process.pid)
      expect(await asked.countVersions(question)).toEqual(versions)
      expect(await listCountingProcesses(process.pid)).toHaveLength(2)
      await expect.poll(() => listCountingProcesses(process.pid), patience).toEqual([kept])
      expect(await asked.countVersions(question)).toEqual(versions)
      expect(await listCountingProcesses(process.pid)).toHaveLength(2)
    } finally {
      await Promise.all([compacting.stop(), asked.stop()])
    }
    expect(await listCountingProcesses(process.pid)).toEqual([])
  })
})
