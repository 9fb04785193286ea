import type { ActivityImportLine } from '@godwit/contract'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestApp, createTestRelease, uploadTestPatchArtifact } from '../support/publishing.ts'
import { createTestService, type TestAccount, type TestService } from '../support/test-service.ts'

const now = '2026-03-18T12:34:56.789Z'

let service: TestService
let owner: TestAccount
let params: { appId: string }
let releaseId: number

beforeAll(async () => {
  service = await createTestService({ clock: () => new Date(now) })
  owner = await service.createAccount()
  params = { appId: await createTestApp(owner) }
  releaseId = await createTestRelease(owner.api, params.appId, '1.0.0')
  const { id: patchId } = await owner.api.createPatch({ params, body: { release_id: releaseId } })
  await uploadTestPatchArtifact(owner.api, { ...params, patchId })
})

afterAll(async () => {
  await service.stop()
})

function line(clientId: string, time: string, more: Partial<ActivityImportLine> = {}): string {
  const device = { client_id: clientId, platform: 'android', arch: 'aarch64', release_version: '1.0.0', time }
  return `${JSON.stringify({ ...device, ...more })}\n`
}

const device = {
  app_id: '',
  client_id: 'live',
  platform: 'android',
  arch: 'aarch64',
  release_version: '1.0.0',
} as const

describe('what is recorded of an app', () => {
  it('counts from the answer on, whether it was imported, checked or reported, until the device is deleted', async () => {
    const { api } = owner
    const history = [
      line('old', '2026-01-20T10:00:00Z'),
      line('old', '2026-03-01T10:00:00+02:00', { platform: 'ios', release_version: null }),
      line('young', '2026-03-02T10:00:00Z', { patch_number: 1 }),
    ]
    expect(await api.importActivity({ params, body: [...history, 'nonsense\n'].join('') })).toMatchObject({
      accepted: 3,
      duplicates: 0,
      rejected: [{ line: 4 }],
      rejected_count: 1,
    })
    expect(await api.importActivity({ params, body: history.join('') })).toMatchObject({ accepted: 0, duplicates: 3 })

    const devices = service.client()
    const identity = { ...device, ...params, app_id: params.appId }
    await devices.checkPatch({ body: { ...identity, channel: 'stable' } })
    const event = { ...identity, patch_number: 1, timestamp: Date.parse(now) / 1000 - 0.789 }
    for (const type of ['__patch_download__', '__patch_install__', '__patch_install__']) {
      await devices.createPatchEvent({ body: { event: { ...event, type } } })
    }

    expect(await api.getVersionDistribution({ params })).toMatchObject({
      total_devices: 3,
      entries: [
        { release_version: '1.0.0', device_count: 2 },
        { releaseVersion: null, deviceCount: 1 },
      ],
    })
    const adoption = await api.getPatchAdoption({ params })
    expect(adoption.patches).toMatchObject([
      { patch_number: 1, target_platforms: ['android'], series: [{ devices: 2, target: 2, adoption_pct: 1 }] },
    ])
    const users = await api.getUniqueUsers({ params, query: { granularity: 'day', group_by: 'platform' } })
    expect(users).toMatchObject({
      unique_users: 3,
      previous: { unique_users: 0 },
      time_series: [
        { period: '2026-03-01T00:00:00.000Z', unique_users: 1 },
        { period: '2026-03-02T00:00:00.000Z', unique_users: 1 },
        { period: '2026-03-18T00:00:00.000Z', unique_users: 1 },
      ],
      breakdown: [
        { group_value: 'android', unique_users: 2 },
        { group_value: 'ios', unique_users: 1 },
      ],
    })
    expect(await api.getNewDevices({ params })).toMatchObject({ current: 2, previous: 0 })
    const { hourly } = await api.getActiveHours({ params })
    expect(hourly.filter((hour) => hour.average_active_devices > 0)).toEqual([
      { hour_utc: 8, average_active_devices: 1 / 28 },
      { hour_utc: 10, average_active_devices: 1 / 28 },
    ])
    expect(await api.getPatchInstalls({ params, query: { group_by: 'release' } })).toMatchObject({
      count: 1,
      previous: { count: 0 },
      breakdown: [{ group_value: '1.0.0', count: 1 }],
    })
    expect(await api.getReleasePatchDownloads({ params: { ...params, releaseId } })).toMatchObject({ count: 1 })

    await api.deleteDevice({ params: { ...params, clientId: 'young' } })
    await expect(api.deleteDevice({ params: { ...params, clientId: 'young' } })).rejects.toMatchObject({ status: 404 })
    expect(await api.getUniqueUsers({ params })).toMatchObject({ unique_users: 2 })
    expect(await api.getNewDevices({ params })).toMatchObject({ current: 1 })
    await api.deleteDevice({ params: { ...params, clientId: 'live' } })
    expect(await api.getVersionDistribution({ params })).toMatchObject({ total_devices: 1 })
    expect((await api.getPatchAdoption({ params })).patches).toMatchObject([{ series: [{ devices: 0, target: 0 }] }])
    expect(await api.getPatchInstalls({ params })).toMatchObject({ count: 0 })
  })
})
