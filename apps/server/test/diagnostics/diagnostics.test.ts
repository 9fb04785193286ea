import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestService, type TestAccount, type TestService } from '../support/test-service.ts'
import { send, toForm } from '../transfers/http.ts'

let service: TestService
let account: TestAccount
let now: Date | undefined

beforeAll(async () => {
  service = await createTestService({ clock: () => now ?? new Date() })
  account = await service.createAccount()
})
afterAll(async () => await service.stop())

const getUploadUrl = async () => (await account.api.getGcpUpload()).upload_url
const getDownloadUrl = async () => (await account.api.getGcpDownload()).download_url
const tooLarge = { status: 413, code: 'payload_too_large' }

describe('the speed test URLs', () => {
  it('come under the names of the specification and of the public client', async () => {
    const { getCloudUpload, getGcpUpload, getCloudDownload, getGcpDownload } = account.api
    for (const { upload_url } of [await getCloudUpload(), await getGcpUpload()]) {
      expect(upload_url).toContain(`${service.baseUrl}/diagnostics/upload?expires=`)
    }
    for (const { download_url } of [await getCloudDownload(), await getGcpDownload()]) {
      expect(download_url).toContain(`${service.baseUrl}/diagnostics/download?expires=`)
    }
  })

  it('need a bearer token to get, and none to use', async () => {
    await expect(service.client().getGcpUpload()).rejects.toMatchObject({ status: 401 })
    expect(await send('POST', await getUploadUrl(), { body: Buffer.alloc(10) })).toMatchObject({ status: 204 })
  })

  it('are good for ten minutes, and for nothing else', async () => {
    const refused = { status: 403, code: 'invalid_signature' }
    const [uploadUrl, downloadUrl] = [await getUploadUrl(), await getDownloadUrl()]
    expect(await send('POST', `${uploadUrl}x`)).toMatchObject(refused)
    expect(await send('GET', uploadUrl.replace('upload', 'download'))).toMatchObject(refused)
    now = new Date(Date.now() + 601_000)
    expect(await send('POST', uploadUrl)).toMatchObject(refused)
    expect(await send('GET', downloadUrl)).toMatchObject(refused)
    now = undefined
  })
})

describe('POST /diagnostics/upload', () => {
  it('takes the form that the public client sends and answers 204', async () => {
    const form = toForm([{ name: 'file', filename: 'speed_test_file', bytes: Buffer.alloc(5_000_000) }])
    expect(await send('POST', await getUploadUrl(), form)).toMatchObject({ status: 204, body: Buffer.alloc(0) })
  })

  it('takes 16 MB and not a byte more', async () => {
    const url = await getUploadUrl()
    const most = Buffer.alloc(16_000_000)
    const more = Buffer.alloc(16_000_001)
    const toFileForm = (bytes: Buffer) => toForm([{ name: 'file', filename: 'f', bytes }])
    expect(await send('POST', url, { body: most })).toMatchObject({ status: 204 })
    expect(await send('POST', url, toFileForm(most))).toMatchObject({ status: 204 })
    expect(await send('POST', url, { body: more })).toMatchObject(tooLarge)
    expect(await send('POST', url, toFileForm(more))).toMatchObject(tooLarge)
  })
})

describe('GET /diagnostics/download', () => {
  it('gives exactly 16,000,000 bytes', async () => {
    const { status, headers, body } = await send('GET', await getDownloadUrl())
    expect(status).toBe(200)
    expect(headers['content-length']).toBe('16000000')
    expect(body.length).toBe(16_000_000)
  })

  it('tells HEAD how many', async () => {
    const { status, headers } = await send('HEAD', await getDownloadUrl())
    expect(status).toBe(200)
    expect(headers['content-length']).toBe('16000000')
  })
})
