import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readSamples } from '../service/read-metrics.ts'
import { createTestApp } from '../support/publishing.ts'
import { createTestService, type TestService } from '../support/test-service.ts'
import { checkOf, eventOf } from './harness.ts'

let service: TestService
let appId: string

beforeAll(async () => {
  service = await createTestService()
  appId = await createTestApp(await service.createAccount())
})
afterAll(() => service.stop())

describe('GET /metrics', () => {
  it('tells what was recorded and dropped, what waits, and what is in memory', async () => {
    const api = service.client()
    for (let device = 0; device < 3; device += 1) await api.checkPatch({ body: checkOf(appId, device) })
    await api.checkPatch({ body: checkOf(appId, 4, { release_version: 'x'.repeat(257) }) })
    await api.checkPatch({ body: checkOf('unknown', 1) })
    for (let time = 0; time < 2; time += 1) {
      await api.createPatchEvent({ body: { event: eventOf(appId, 1, { timestamp: 1_790_000_000 }) } })
    }
    await service.deps.recorder.flush()
    expect(await readSamples(service.baseUrl)).toMatchObject({
      godwit_observations_recorded_total: 4,
      'godwit_observations_dropped_total{reason="backlog"}': 0,
      'godwit_observations_dropped_total{reason="refused"}': 0,
      'godwit_observations_dropped_total{reason="name_too_long"}': 1,
      godwit_activity_backlog_bytes: 0,
      godwit_activity_spool_bytes: 0,
      godwit_activity_lag_seconds: expect.any(Number),
      godwit_activity_compacted_observations_total: expect.any(Number),
      godwit_device_index_apps: 1,
      godwit_device_index_loaded_apps: 1,
      godwit_device_index_bytes: expect.any(Number),
      godwit_device_index_loads_total: 1,
      process_resident_memory_bytes: expect.any(Number),
    })
  })
})
