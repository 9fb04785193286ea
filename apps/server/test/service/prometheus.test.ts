import pg from 'pg'
import { AggregatorRegistry } from 'prom-client'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { checkOf, eventOf } from '../activity/harness.ts'
import { startOutage } from '../support/outage.ts'
import { createTestApp, createTestRelease, uploadTestReleaseArtifact } from '../support/publishing.ts'
import { createTestService, type TestAccount, type TestService } from '../support/test-service.ts'
import { parseMetrics, readMetrics, readSamples } from './read-metrics.ts'

const requests = 'godwit_http_request_duration_seconds'

let service: TestService
let owner: TestAccount
let appId: string

beforeAll(async () => {
  service = await createTestService()
  owner = await service.createAccount()
  appId = await createTestApp(owner)
})
afterAll(() => service.stop())

describe('GET /metrics', () => {
  it('counts requests by template, method and class of the status', async () => {
    await owner.api.listReleases({ params: { appId } })
    await expect(owner.api.listReleases({ params: { appId: 'none' } })).rejects.toThrow()
    await fetch(`${service.baseUrl}/a/path/that/nobody/knows`)
    const samples = await readSamples(service.baseUrl)
    const route = 'route="/api/v1/apps/{appId}/releases"'
    expect(samples).toMatchObject({
      [`${requests}_count{method="GET",${route},status="2xx"}`]: 1,
      [`${requests}_count{method="GET",${route},status="4xx"}`]: 1,
      [`${requests}_count{method="GET",route="none",status="4xx"}`]: 1,
    })
    expect(Object.keys(samples).join('\n')).not.toContain(appId)
  })

  it('counts what the device door answers, refused or not', async () => {
    const read = async () => {
      const samples = await readSamples(service.baseUrl)
      return (route: string, status: string) =>
        samples[`${requests}_count{method="POST",route="/api/v1/patches/${route}",status="${status}"}`] ?? 0
    }
    const before = await read()
    const api = service.client()
    for (let device = 0; device < 3; device += 1) await api.checkPatch({ body: checkOf(appId, device) })
    await api.createPatchEvent({ body: { event: eventOf(appId, 1, { timestamp: 1_790_000_000 }) } })
    await fetch(`${service.baseUrl}/api/v1/patches/check`, { method: 'POST', body: '{' })
    const after = await read()
    expect(after('check', '2xx') - before('check', '2xx')).toBe(3)
    expect(after('check', '4xx') - before('check', '4xx')).toBe(1)
    expect(after('events', '2xx') - before('events', '2xx')).toBe(1)
  })

  it('counts requests whose clients go away, before and while they are answered', async () => {
    const releaseId = await createTestRelease(owner.api, appId)
    const bytes = Buffer.alloc(32 * 1024 ** 2)
    await uploadTestReleaseArtifact(owner.api, { appId, releaseId }, { arch: 'aarch64', bytes })
    const { artifacts } = await owner.api.listReleaseArtifacts({ params: { appId, releaseId }, query: {} })
    const before = await readSamples(service.baseUrl)
    const sinceThen = async () => {
      const after = await readSamples(service.baseUrl)
      const isOfRequests = (name: string) => name.startsWith(`${requests}_count`) && !name.includes('/metrics')
      const grown = Object.keys(after).filter((name) => isOfRequests(name) && after[name] !== (before[name] ?? 0))
      return grown.map((name) => name.replace(/^.*route="([^"]*)",status="([^"]*)".*$/, '$1 $2')).toSorted()
    }
    const download = await fetch(artifacts[0]?.url ?? '')
    await download.body?.cancel()
    await expect.poll(sinceThen).toEqual(['/downloads/{blobKey} 2xx'])

    const locker = new pg.Client({ connectionString: service.connectionString })
    await locker.connect()
    await locker.query('begin; lock table releases')
    const leaving = new AbortController()
    const headers = { authorization: `Bearer ${owner.apiKey}` }
    const request = fetch(`${service.baseUrl}/api/v1/apps/${appId}/releases`, { headers, signal: leaving.signal })
    const countWaiting = async () => (await locker.query('select from pg_locks where not granted')).rowCount
    await expect.poll(countWaiting).toBe(1)
    leaving.abort()
    await expect(request).rejects.toThrow('aborted')
    await expect.poll(sinceThen).toEqual(['/api/v1/apps/{appId}/releases 4xx', '/downloads/{blobKey} 2xx'])
    await locker.end()
  })

  it('has histograms whose buckets add up to their count', async () => {
    const families = await readMetrics(service.baseUrl)
    const histograms = [...families.values()].filter(({ name, type }) => type === 'histogram' && /^godwit/.test(name))
    expect(histograms.length).toBeGreaterThan(3)
    for (const { name, samples } of histograms) {
      const counts = [...samples].filter(([sample]) => sample.startsWith(`${name}_count`))
      expect(counts).not.toEqual([])
      for (const [sample, count] of counts) {
        const labels = /\{(.*)\}/.exec(sample)?.[1] ?? ''
        const buckets = [...samples].filter(
          ([key]) => key.startsWith(`${name}_bucket`) && (labels === '' || key.includes(labels)),
        )
        const values = buckets.map(([, value]) => value)
        expect(values).toEqual(values.toSorted((a, b) => a - b))
        expect(buckets.at(-1)).toEqual([expect.stringContaining('le="+Inf"'), count])
      }
    }
  })

  it('tells of pool, statements, blobs and jobs', async () => {
    expect(await readSamples(service.baseUrl)).toMatchObject({
      godwit_database_pool_max_connections: 14,
      godwit_database_up: 1,
      godwit_database_pool_waiting: 0,
      'godwit_database_pool_connections{state="idle"}': expect.any(Number),
      godwit_database_query_duration_seconds_count: expect.any(Number),
      'godwit_database_query_errors_total{sqlstate_class="none"}': 0,
      'godwit_blob_errors_total{operation="read"}': 0,
      'godwit_jobs{queue="analyze-release",state="waiting"}': 0,
      'godwit_jobs_oldest_waiting_seconds{queue="send-mail"}': 0,
      'godwit_job_duration_seconds_count{queue="maintenance",outcome="failed"}': 0,
      [`godwit_build_info{version="0.1.0",node_version="${process.version}"}`]: 1,
    })
  })

  it('counts the statements that fail by their class', async () => {
    await expect(owner.api.createApp({ body: { display_name: 'x', organization_id: 0 } })).rejects.toThrow()
    await service.deps.db
      .selectFrom('no_such_table' as 'apps')
      .selectAll()
      .execute()
      .catch(() => undefined)
    const samples = await readSamples(service.baseUrl)
    expect(samples['godwit_database_query_errors_total{sqlstate_class="42"}']).toBe(1)
  })

  it('answers while the database is away: the index ages, no connection is had, and what only the database knows is left out', async () => {
    const before = await readSamples(service.baseUrl)
    expect(before.godwit_device_index_age_seconds).toBeLessThan(6)
    const outage = await startOutage(service)
    try {
      const read = async () => await readSamples(service.baseUrl)
      await expect.poll(read, { timeout: 15_000 }).toMatchObject({
        godwit_database_up: 0,
        godwit_database_acquire_failures_total: expect.toSatisfy(
          (value: number) => value > (before.godwit_database_acquire_failures_total ?? 0),
        ),
        godwit_device_index_age_seconds: expect.toSatisfy((value: number) => value > 6),
      })
      expect(Object.keys(await read()).filter((sample) => sample.startsWith('godwit_jobs'))).toEqual([])
    } finally {
      await outage.end()
    }
    await expect
      .poll(async () => (await readSamples(service.baseUrl)).godwit_device_index_age_seconds, { timeout: 15_000 })
      .toBeLessThan(6)
  })

  it('adds up for several processes what each has done, and not what they share', async () => {
    const json = await service.deps.registry.getMetricsAsJSON()
    const both = parseMetrics(await AggregatorRegistry.aggregate([json, json]).metrics())
    const samples = Object.fromEntries([...both.values()].flatMap((family) => [...family.samples]))
    const alone = await readSamples(service.baseUrl)
    const checks = `${requests}_count{method="POST",route="/api/v1/patches/check",status="2xx"}`
    expect(samples[checks]).toBe(2 * (alone[checks] ?? 0))
    expect(samples.godwit_database_pool_max_connections).toBe(2 * (alone.godwit_database_pool_max_connections ?? 0))
    expect(samples.godwit_device_index_apps).toBe(alone.godwit_device_index_apps)
    expect(samples.godwit_database_up).toBe(1)
  })

  it('follows the naming rules of Prometheus', async () => {
    const families = [...(await readMetrics(service.baseUrl)).values()]
    const misnamed = families.filter(
      ({ name, type, help }) =>
        !/^(godwit|process|nodejs)_[a-z0-9_]+$/.test(name) ||
        help === '' ||
        (type === 'counter') !== name.endsWith('_total') ||
        /_(ms|milliseconds|seconds_sum|minutes|hours|kb|mb|kilobytes|count|bucket|counter|gauge|histogram)(_|$)/.test(
          name,
        ),
    )
    expect(misnamed.map(({ name }) => name)).toEqual([])
    const timed = families.filter(({ type, name }) => type === 'histogram' && !/_(seconds|bytes)$/.test(name))
    expect(timed.map(({ name }) => name)).toEqual([])
  })
})

describe('GODWIT_METRICS_TOKEN', () => {
  it('is asked for once it is set', async () => {
    const closed = await createTestService({ config: { metricsToken: 'a-token-of-the-operator' } })
    const read = async (authorization?: string) => {
      const headers = authorization === undefined ? {} : { authorization }
      return (await fetch(`${closed.baseUrl}/metrics`, { headers })).status
    }
    const statuses = [await read(), await read('Bearer a-token-of-the-operatoR'), await read('a-token-of-the-operator')]
    expect(statuses).toEqual([401, 401, 401])
    expect(await read('Bearer a-token-of-the-operator')).toBe(200)
    await closed.stop()
  })
})
