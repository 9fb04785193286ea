import { randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { noS3Server, type S3Server, startS3Server, toLocation } from '../support/s3-server.ts'
import { createTestService, type TestAccount, type TestService } from '../support/test-service.ts'
import { createPublisher, type Publisher } from '../transfers/artifacts.ts'
import { putChunk, send } from '../transfers/http.ts'
import { runAdmin } from './run-admin.ts'

describe.skipIf(noS3Server !== undefined)('migrate-blobs', () => {
  let server: S3Server
  let setting: string
  let service: TestService
  let account: TestAccount
  let publisher: Publisher

  beforeAll(async () => {
    server = await startS3Server()
    setting = server.newBlobsSetting()
    service = await createTestService()
    account = await service.createAccount()
    publisher = await createPublisher(account)
  })
  afterAll(async () => {
    await service?.stop()
    await server?.remove()
  })

  const migrate = async (from: string, to: string) =>
    await runAdmin(
      { DATABASE_URL: service.connectionString, GODWIT_DATA_DIR: service.dataDir, ...server.credentials },
      ['migrate-blobs', '--from', from, '--to', to],
    )
  async function upload() {
    const bytes = randomBytes(50_000)
    const { key, url } = await publisher.registerPatch(bytes)
    expect(await send('POST', url, { body: bytes })).toMatchObject({ status: 200 })
    return { bytes, key }
  }
  async function expectServed(blobs: { bytes: Buffer; key: string }[]) {
    for (const { bytes, key } of blobs) {
      const answer = await fetch(service.deps.urls.sign('download', key))
      expect(Buffer.from(await answer.arrayBuffer()).equals(bytes)).toBe(true)
    }
  }
  async function restartWith(settings: object) {
    Object.assign(service.deps.config, settings)
    await service.restart()
  }

  it('moves an installation to a bucket and back while it serves: nothing is missing at any step', async () => {
    const early = [await upload(), await upload(), await upload()]
    const half = randomBytes(1000)
    const unfinished = await publisher.registerRelease(half)
    await putChunk(unfinished.url, half, 0, 499)
    const first = await migrate('disk', setting)
    expect(first.stderr).toContain('3 blobs were copied, 0 were there already, 0 could not be copied')
    expect(first).toMatchObject({ code: 0, stdout: '' })
    const late = await upload()

    await restartWith({ blobs: toLocation(setting), blobsFallback: service.deps.config.blobs })
    await expectServed([...early, late])
    // What the old place has of an upload is of no use: it starts again, and nobody is told that it failed.
    expect((await putChunk(unfinished.url, half, 500, 999)).headers.range).toBeUndefined()
    expect(await putChunk(unfinished.url, half, 0, 999)).toMatchObject({ status: 200 })
    const second = await migrate('disk', setting)
    expect(second.stderr).toContain('1 blobs were copied, 4 were there already')

    await restartWith({ blobsFallback: undefined })
    await expectServed([...early, late])
    const back = await migrate(setting, `file:${join(service.dataDir, 'back')}`)
    expect(back.stderr).toContain('5 blobs were copied')
    await restartWith({ blobs: { kind: 'disk', dir: join(service.dataDir, 'back') } })
    await expectServed([...early, late])
  })

  it('does not copy bytes that have changed, copies the others, and says so', async () => {
    const { key } = await upload()
    const to = server.newBlobsSetting()
    await writeFile(join(service.dataDir, 'back', key.slice(0, 2), key.slice(2, 4), key), randomBytes(50_000))
    const { code, stderr } = await migrate(`file:${join(service.dataDir, 'back')}`, to)
    expect(code).toBe(1)
    expect(stderr).toContain('5 blobs were copied, 0 were there already, 1 could not be copied')
    expect(stderr).toContain(`blob ${key} has changed`)
  })

  it('refuses a place that is none, before anything is copied', async () => {
    expect(await migrate('disk', 's3://bucket?sse=none')).toMatchObject({ code: 1 })
    const { code, stderr } = await migrate('disk', setting.replace('s3://godwit', 's3://no-such-bucket'))
    expect({ code, stderr }).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('there is no bucket no-such-bucket'),
    })
  })
})
