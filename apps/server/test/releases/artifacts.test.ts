import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  createTestApp,
  createTestRelease,
  registerTestReleaseArtifact,
  sha256,
  upload,
  uploadTestReleaseArtifact,
} from '../support/publishing.ts'
import { createTestService, type TestAccount, type TestService } from '../support/test-service.ts'

let service: TestService
let owner: TestAccount
let appId: string
let params: { appId: string; releaseId: number }
let releases = 0

beforeAll(async () => {
  service = await createTestService({ config: { maxArtifactBytes: 1_000_000 } })
  owner = await service.createAccount()
  appId = await createTestApp(owner)
})
afterAll(() => service.stop())

async function newRelease() {
  releases += 1
  params = { appId, releaseId: await createTestRelease(owner.api, appId, `1.0.${releases}`) }
  return params
}

function listArtifacts(query: { arch?: string; platform?: 'android' | 'ios' } = {}) {
  return owner.api.listReleaseArtifacts({ params, query }).then(({ artifacts }) => artifacts)
}

async function registerForm(fields: Record<string, string>, headers: Record<string, string> = {}) {
  const form = new FormData()
  for (const [name, value] of Object.entries(fields)) form.set(name, value)
  const response = await fetch(`${service.baseUrl}/api/v1/apps/${appId}/releases/${params.releaseId}/artifacts`, {
    method: 'POST',
    headers: { authorization: `Bearer ${owner.apiKey}`, ...headers },
    body: form,
  })
  return { status: response.status, body: (await response.json()) as Record<string, unknown> }
}

describe('registering a release artifact', () => {
  it('takes the form of the public client, and returns what was sent verbatim', async () => {
    await newRelease()
    const bytes = randomBytes(64)
    const hash = sha256(bytes).toUpperCase()
    const { status, body } = await registerForm(
      {
        arch: 'xcarchive',
        platform: 'ios',
        hash,
        filename: 'a.zip',
        can_sideload: 'false',
        size: '64',
        podfile_lock_hash: 'PoD',
      },
      { 'x-cli-version': '1.6.119' },
    )
    expect(status).toBe(200)
    expect(body).toEqual({
      id: expect.any(Number),
      release_id: params.releaseId,
      arch: 'xcarchive',
      platform: 'ios',
      hash,
      size: 64,
      url: expect.stringMatching(new RegExp(`^${service.baseUrl}/uploads/`)),
      upload_method: 'resumable',
    })
    await upload(String(body.url), bytes)
    expect(await listArtifacts()).toMatchObject([
      {
        id: body.id,
        arch: 'xcarchive',
        platform: 'ios',
        hash,
        size: 64,
        podfile_lock_hash: 'PoD',
        can_sideload: false,
      },
    ])
  })

  it.each([
    ['size', { size: '1e3' }],
    ['size', { size: '' }],
    ['can_sideload', { can_sideload: 'yes' }],
    ['platform', { platform: 'beos' }],
    ['hash', { hash: 'zz' }],
    ['arch', { arch: '' }],
  ])('names %s when the form is wrong in it', async (field, change) => {
    await newRelease()
    const { status, body } = await registerForm({
      arch: 'aab',
      platform: 'android',
      hash: 'a'.repeat(64),
      can_sideload: 'true',
      size: '1',
      ...change,
    })
    expect(status).toBe(400)
    expect(body.details).toContain(`${field}:`)
  })

  it('advises old and unknown clients to send multipart', async () => {
    await newRelease()
    const { artifact } = await registerTestReleaseArtifact(owner.api, params)
    expect(artifact.upload_method).toBe('multipart')
  })

  it('refuses more than the largest artifact', async () => {
    await newRelease()
    const body = {
      arch: 'aab',
      platform: 'android',
      hash: 'a'.repeat(64),
      size: 1_000_001,
      can_sideload: true,
    } as const
    await expect(owner.api.createReleaseArtifact({ params, body })).rejects.toMatchObject({
      status: 413,
      code: 'payload_too_large',
    })
  })

  it('completes an empty file at once, because clients send nothing for it', async () => {
    await newRelease()
    const { artifact } = await registerTestReleaseArtifact(owner.api, params, { bytes: Buffer.alloc(0) })
    const [listed] = await listArtifacts()
    expect(listed).toMatchObject({ id: artifact.id, size: 0 })
    const response = await fetch(listed?.url ?? '')
    expect(response.status).toBe(200)
    expect(await response.text()).toBe('')
  })

  it('is not in its own way when the bytes never arrived', async () => {
    await newRelease()
    const bytes = randomBytes(100)
    await registerTestReleaseArtifact(owner.api, params, { bytes })
    await owner.api.updateRelease({ params, body: { status: 'active', platform: 'android' } })
    expect(await listArtifacts()).toEqual([])
    const { artifact } = await uploadTestReleaseArtifact(owner.api, params, { bytes })
    expect(await listArtifacts()).toMatchObject([{ id: artifact.id }])
  })

  it('conflicts with what is uploaded once the platform is active', async () => {
    await newRelease()
    await uploadTestReleaseArtifact(owner.api, params)
    await owner.api.updateRelease({ params, body: { status: 'active', platform: 'android' } })
    await expect(registerTestReleaseArtifact(owner.api, params)).rejects.toMatchObject({
      status: 409,
      code: 'artifact_exists',
    })
    await uploadTestReleaseArtifact(owner.api, params, { arch: 'aarch64' })
  })

  it('conflicts with identical bytes in a draft, but lets other bytes replace them under a new id', async () => {
    await newRelease()
    await owner.api.updateRelease({ params, body: { status: 'draft', platform: 'android' } })
    const first = await uploadTestReleaseArtifact(owner.api, params)
    await expect(registerTestReleaseArtifact(owner.api, params, { bytes: first.bytes })).rejects.toMatchObject({
      status: 409,
      code: 'artifact_exists',
    })
    const second = await registerTestReleaseArtifact(owner.api, params)
    expect(await listArtifacts()).toMatchObject([{ id: first.artifact.id }])
    await upload(second.artifact.url, second.bytes)
    expect(await listArtifacts()).toMatchObject([{ id: second.artifact.id, hash: sha256(second.bytes) }])
    expect(second.artifact.id).not.toBe(first.artifact.id)
  })
})

describe('listing release artifacts', () => {
  it('filters by arch and platform, and answers an empty list for no match', async () => {
    await newRelease()
    await uploadTestReleaseArtifact(owner.api, params, { platform: 'android', arch: 'aarch64' })
    await uploadTestReleaseArtifact(owner.api, params, { platform: 'android', arch: 'x86_64' })
    await uploadTestReleaseArtifact(owner.api, params, { platform: 'ios', arch: 'aarch64' })
    expect(await listArtifacts({ arch: 'aarch64' })).toHaveLength(2)
    expect(await listArtifacts({ platform: 'android' })).toHaveLength(2)
    expect(await listArtifacts({ arch: 'aarch64', platform: 'ios' })).toMatchObject([{ platform: 'ios' }])
    expect(await listArtifacts({ arch: 'arm', platform: 'android' })).toEqual([])
  })

  it('takes the bare question mark of the public client', async () => {
    await newRelease()
    const url = `${service.baseUrl}/api/v1/apps/${appId}/releases/${params.releaseId}/artifacts?`
    const response = await fetch(url, { headers: { authorization: `Bearer ${owner.apiKey}` } })
    expect(await response.json()).toEqual({ artifacts: [] })
  })

  it('gives URLs that need no credential and carry the uploaded bytes', async () => {
    await newRelease()
    const { bytes } = await uploadTestReleaseArtifact(owner.api, params)
    const [artifact] = await listArtifacts()
    const response = await fetch(artifact?.url ?? '')
    expect(response.status).toBe(200)
    expect(Buffer.from(await response.arrayBuffer())).toEqual(bytes)
  })
})

describe('deleting release artifacts', () => {
  it('removes those of one platform, or all', async () => {
    await newRelease()
    await uploadTestReleaseArtifact(owner.api, params, { platform: 'android' })
    await uploadTestReleaseArtifact(owner.api, params, { platform: 'ios', arch: 'runner' })
    await owner.api.deleteReleaseArtifacts({ params, query: { platform: 'ios' } })
    expect(await listArtifacts()).toMatchObject([{ platform: 'android' }])
    await owner.api.deleteReleaseArtifacts({ params })
    expect(await listArtifacts()).toEqual([])
    await owner.api.deleteReleaseArtifacts({ params })
  })
})
