import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { queryOnce } from '../database.ts'
import type { Report, Scenario, ScenarioOptions } from '../scenario.ts'
import { verifyLedger } from '../verify.ts'
import { makeFolder, openServer, openWorld, takeFirst } from '../world.ts'

const admin = new URL('../../../apps/server/src/admin/main.ts', import.meta.url).pathname
const longestMs = 3000

/**
 * The command is killed again and again while it makes a backup, then while it restores one; both must find their way on.
 * Afterwards the service on what was restored must know everything that the other one had acknowledged.
 */
async function killBackups(report: Report, { rounds }: ScenarioOptions): Promise<void> {
  const world = await openWorld()
  const { database, server, publisher, apps, devices, ledger } = world
  const folder = await makeFolder()
  const backup = join(folder, 'backup')
  const { app, release } = takeFirst(apps)
  const environment = { DATABASE_URL: database.url, GODWIT_DATA_DIR: server.dataDir }
  const during = devices.enter('backups were made and killed')
  let finished = 0
  for (let round = 0; round < rounds; round += 1) {
    await publisher.publishPatch(app, release)
    await publisher.uploadRelease(release, { sizeBytes: 500_000 })
    const code = await runAdmin(['backup', backup], environment, Math.random() * longestMs)
    if (code === 0) finished += 1
  }
  report.mustAnswerAll(during)
  await devices.stop()
  await publisher.settle()
  const last = await runAdmin(['backup', backup], environment)
  report.must(last === 0, `a backup succeeds after ${rounds - finished} that were killed: ${last}`)

  await queryOnce(database.url, 'create database restored')
  const url = new URL(database.url)
  url.pathname = '/restored'
  const dataDir = join(folder, 'data')
  const restored = { DATABASE_URL: url.href, GODWIT_DATA_DIR: dataDir }
  let restoredWith: number | null = null
  for (let round = 0; round < rounds && restoredWith !== 0; round += 1) {
    restoredWith = await runAdmin(['restore', backup], restored, Math.random() * longestMs)
  }
  if (restoredWith !== 0) restoredWith = await runAdmin(['restore', backup], restored)
  report.must(restoredWith === 0, `a restore succeeds after others were killed: ${restoredWith}`)
  const startedMs = performance.now()
  const second = await openServer({ DATABASE_URL: url.href }, { dataDir })
  report.recovered(performance.now() - startedMs)
  report.addDevices(devices)
  report.note(`${rounds} backups were begun and killed, of which ${finished} had finished`)
  const { api, baseUrl } = second
  report.addFindings(await verifyLedger({ api, baseUrl, databaseUrl: url.href, ledger }))
}

/** Its exit code; null when it was killed first. */
async function runAdmin(
  parameters: string[],
  environment: Record<string, string>,
  killAfterMs?: number,
): Promise<number | null> {
  const env = { PATH: process.env.PATH, GODWIT_LOG_LEVEL: 'error', ...environment }
  const child = spawn(process.execPath, [admin, ...parameters], { env, stdio: 'ignore' })
  const exited = once(child, 'exit')
  if (killAfterMs !== undefined) {
    await Promise.race([exited, sleep(killAfterMs)])
    child.kill('SIGKILL')
  }
  const [code] = (await exited) as [number | null]
  return code
}

export const backupKilled: Scenario = {
  name: 'killed-backup',
  title: 'SIGKILL to backups and restores; then the restored service is checked',
  run: killBackups,
}
