import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createDeviceApi } from '../../../../bench/simulate/device-api.ts'
import { readOptions } from '../../../../bench/simulate/options.ts'
import { runOnline } from '../../../../bench/simulate/run-online.ts'
import { createSimulation } from '../../../../bench/simulate/simulation.ts'
import { summarize } from '../../../../bench/simulate/summary.ts'
import { createTestApp, createTestRelease, findChannelId, uploadTestPatchArtifact } from '../support/publishing.ts'
import { createTestService, type TestService } from '../support/test-service.ts'

const daySeconds = 86_400
let service: TestService

beforeAll(async () => {
  service = await createTestService()
})
afterAll(() => service.stop())

async function publishApp() {
  const account = await service.createAccount()
  const appId = await createTestApp(account)
  const releaseId = await createTestRelease(account.api, appId)
  const channelId = await findChannelId(account.api, appId)
  const publish = async () => {
    const patch = await account.api.createPatch({ params: { appId }, body: { release_id: releaseId } })
    for (const arch of ['aarch64', 'arm', 'x86_64']) {
      await uploadTestPatchArtifact(account.api, { appId, patchId: patch.id }, { arch })
    }
    await account.api.promotePatch({ params: { appId }, body: { patch_id: patch.id, channel_id: channelId } })
    return patch
  }
  const rollBack = (patchId: number) => account.api.rollBackPatch({ params: { appId, releaseId, patchId } })
  return { appId, publish, rollBack }
}

function start(appId: string, args: string[]) {
  const place = ['--releases', '1.0.0+1', '--platforms', 'android', '--url', service.baseUrl]
  const options = readOptions(['--app', appId, ...place, ...args])
  const startSeconds = Math.floor(Date.now() / 1000) - options.days * daySeconds
  const simulation = createSimulation({ ...options, startSeconds })
  const api = createDeviceApi(options.url, options.connections)
  const runUntil = (untilSeconds?: number) => runOnline(simulation, { ...options, api, untilSeconds })
  return { simulation, runUntil, api }
}

describe('the simulator against a server', () => {
  it('counts the events that the server has, and obeys promotions and a roll back in between', async () => {
    const { appId, publish, rollBack } = await publishApp()
    const { simulation, runUntil, api } = start(appId, ['--devices', '200', '--days', '4', '--failure-rate', '0.1'])
    await publish()
    await runUntil(daySeconds)
    const second = await publish()
    await runUntil(2 * daySeconds)
    const before = summarize(simulation.population, simulation.counts, 1)
    expect(before.running['1.0.0+1']?.['patch 2']).toBeGreaterThan(20)
    await rollBack(second.id)
    await runUntil()
    api.close()

    const summary = summarize(simulation.population, simulation.counts, 1)
    expect(summary.errors).toEqual({})
    await service.deps.recorder.flush()
    const rows = await service.deps.db
      .selectFrom('device_events')
      .select((eb) => ['type', eb.fn.countAll<string>().as('count')])
      .where('app_id', '=', appId)
      .groupBy('type')
      .execute()
    expect(Object.fromEntries(rows.map(({ type, count }) => [type, Number(count)]))).toEqual(summary.events)
    expect(summary.events.__patch_install_failure__).toBeGreaterThan(0)
    expect(summary.uninstalls).toBeGreaterThan(20)
    expect(await findLastInstalled(appId)).toBeGreaterThan(100)
    // Only devices that have not launched twice since the roll back may still run it.
    expect(summary.running['1.0.0+1']?.['patch 2'] ?? 0).toBeLessThan(40)
    expect(summary.running['1.0.0+1']?.['patch 1']).toBeGreaterThan(100)
  })

  it('downloads what is offered when told to', async () => {
    const { appId, publish } = await publishApp()
    await publish()
    const { simulation, runUntil, api } = start(appId, ['--devices', '20', '--days', '1', '--download'])
    await runUntil()
    api.close()
    expect(simulation.counts.errors).toEqual({})
    expect(simulation.counts.downloads).toBeGreaterThan(0)
  })

  it('stops soon after the signal, with what was counted until then', async () => {
    const { appId } = await publishApp()
    const { simulation, api } = start(appId, ['--devices', '20', '--days', '20'])
    const stopping = new AbortController()
    const running = runOnline(simulation, {
      api: {
        ...api,
        check: async (body) => {
          const answer = await api.check(body)
          if (simulation.counts.checks === 9) stopping.abort()
          return answer
        },
      },
      appId,
      channel: 'stable',
      connections: 2,
      speed: Number.POSITIVE_INFINITY,
      isDownloading: false,
      signal: stopping.signal,
    })
    await running
    api.close()
    expect(simulation.counts.checks).toBeGreaterThanOrEqual(10)
    expect(simulation.counts.checks).toBeLessThanOrEqual(12)
  })
})

describe('the simulator against a server in trouble', () => {
  it('counts what goes wrong by its kind, and the devices go on', async () => {
    let requests = 0
    const answer: RequestListener = (request, response) => {
      request.resume()
      requests += 1
      if (requests % 3 === 0) response.writeHead(503).end()
      else response.writeHead(200).end(requests % 3 === 1 ? '{"patch_available":true}' : '{"patch_available":false}')
    }
    const server = createServer(answer)
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const { simulation, runUntil, api } = start('any', ['--devices', '9', '--days', '1', '--url', url])
    await runUntil()
    api.close()
    server.close()
    const { checks, errors } = simulation.counts
    expect(Object.keys(errors).sort()).toEqual(['HTTP 503', 'an answer that no device understands'])
    expect(checks).toBe(Math.ceil((requests - 1) / 3))
  })
})

/** Of how many devices the last install is of patch 1. */
async function findLastInstalled(appId: string): Promise<number> {
  await service.deps.recorder.flush()
  const rows = await service.deps.db
    .selectFrom('device_events')
    .distinctOn('client_id')
    .select(['client_id', 'patch_number'])
    .where('app_id', '=', appId)
    .where('type', '=', '__patch_install__')
    .orderBy('client_id')
    .orderBy('occurred_at', 'desc')
    .execute()
  return rows.filter(({ patch_number }) => Number(patch_number) === 1).length
}
