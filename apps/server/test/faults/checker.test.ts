import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Devices, platforms, startDevices } from '../../../../bench/faults/devices.ts'
import { createLedger, type Ledger } from '../../../../bench/faults/ledger.ts'
import { createPublisher, type Publisher } from '../../../../bench/faults/publisher.ts'
import { type Findings, verifyLedger } from '../../../../bench/faults/verify.ts'
import { publishApps, type World } from '../../../../bench/faults/world.ts'
import { createTestService, type TestAccount, type TestService } from '../support/test-service.ts'

let service: TestService
let account: TestAccount
let ledger: Ledger
let publisher: Publisher
let apps: World['apps']
let devices: Devices

beforeEach(async () => {
  service = await createTestService()
  account = await service.createAccount()
  ledger = createLedger()
  publisher = createPublisher({ api: account.api, ledger })
  apps = await publishApps(publisher, 3)
  const targets = apps.flatMap(({ release: { appId, version } }) =>
    platforms.map((platform) => ({ appId, place: { version, channel: 'stable', platform, arch: 'aarch64' } })),
  )
  const { baseUrl } = service
  devices = startDevices({ baseUrl: () => baseUrl, ledger, targets: () => targets, checksPerSecond: 300 })
})
afterEach(async () => {
  await devices.stop()
  await service.stop()
})

/** What is planted is found at once: nobody has to wait until it is counted. */
async function verify(): Promise<Findings> {
  await devices.stop()
  await service.deps.recorder.flush()
  const { baseUrl, connectionString: databaseUrl } = service
  return await verifyLedger({ api: account.api, baseUrl, databaseUrl, ledger }, 0)
}

async function query(text: string): Promise<number> {
  const client = new pg.Client({ connectionString: service.connectionString })
  await client.connect()
  const { rowCount } = await client.query(text)
  await client.end()
  return rowCount ?? 0
}

function countAnswered(): number {
  return devices.phases.reduce((sum, { answered }) => sum + answered, 0)
}

function listWrong(): string[] {
  return devices.phases.flatMap(({ wrong }) => wrong)
}

async function waitForAnswers(count: number): Promise<void> {
  const wanted = countAnswered() + count
  await expect.poll(countAnswered, { timeout: 10_000 }).toBeGreaterThan(wanted)
}

describe('the checker of the fault suite', () => {
  it('finds nothing where nothing is wrong, while offers change', async () => {
    const [{ app, release } = raise()] = apps
    for (let turn = 0; turn < 3; turn += 1) {
      const patch = await publisher.publishPatch(app, release)
      await publisher.setRolledBack(release, patch, true)
      await publisher.setRolledBack(release, patch, false)
      await publisher.promote(app, release, patch, 'beta')
    }
    await waitForAnswers(50)
    expect(await verify()).toEqual({ lost: [], wrong: [], lostChecks: 0, excusedChecks: 0 })
    expect(listWrong()).toEqual([])
    expect(ledger.events.length).toBeGreaterThan(5)
  })

  it('finds an answer that is out of date', async () => {
    await waitForAnswers(20)
    // As a service that missed a promotion would answer: the team knows of another patch than the devices.
    const [{ release } = raise()] = apps
    const known = ledger.answers.read(release.key)
    ledger.answers.begin(release.key, known.slice(0, 0), performance.now() - 5000).acknowledge(performance.now() - 5000)
    await waitForAnswers(100)
    expect(listWrong().length).toBeGreaterThan(10)
  })

  it('finds each of the faults that are planted', async () => {
    const [{ app, release } = raise()] = apps
    const { id } = await publisher.publishPatch(app, release)
    await publisher.uploadRelease(release, { sizeBytes: 1000, name: 'missing' })
    await waitForAnswers(100)
    await devices.stop()
    await service.deps.recorder.flush()
    await query(`delete from apps where display_name = 'App 3'`)
    await query(`delete from releases where version = '1.0.2'`)
    await query(`delete from patches where id = ${id}`)
    await query(`update patches set channel_id = null where number = 1`)
    await query(`update patches set is_rolled_back = false where number = 2`)
    await query(
      `delete from device_events where id in (select id from device_events where app_id = '${app.appId}' limit 1)`,
    )
    await query('truncate activity_segments')
    await query(`delete from activity_devices where client in (select client from activity_devices limit 1)`)
    await query(`delete from release_artifacts where arch = 'missing'`)
    await corruptBlobs()
    const { lost } = await verify()
    const expected = [
      /^app App 3$/,
      /^release 1\.0\.2$/,
      /^patch 3 of 1\.0\.1$/,
      /^patch 1 of 1\.0\.1: its promotion$/,
      /^patch 2 of 1\.0\.1: its rollback$/,
      /^\d+ events that were answered$/,
      /^the observations of \d+ checks$/,
      /^upload arch-\S+ of 1\.0\.1: [0-9a-f]{64}$/,
      /^upload missing of 1\.0\.1: not listed$/,
    ]
    for (const finding of expected) expect(lost).toContainEqual(expect.stringMatching(finding))
  })

  it('finds a device that is counted without having been seen', async () => {
    await waitForAnswers(20)
    await devices.stop()
    ledger.checks.pop()
    const { wrong } = await verify()
    expect(wrong).toContainEqual(expect.stringMatching(/: unique users: \d+ instead of \d+/))
  })
})

async function corruptBlobs(): Promise<void> {
  const dir = join(service.dataDir, 'blobs')
  for (const entry of await readdir(dir, { recursive: true, withFileTypes: true })) {
    if (entry.isFile()) await writeFile(join(entry.parentPath, entry.name), 'other bytes')
  }
}

function raise(): never {
  throw new Error('nothing was published')
}
