import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  createTestApp,
  createTestRelease,
  findChannelId,
  sha256,
  uploadTestPatchArtifact,
} from '../support/publishing.ts'
import { createTestService, type TestAccount, type TestService } from '../support/test-service.ts'

let service: TestService
let owner: TestAccount
let appId: string
let releaseId: number
let releases = 0

beforeAll(async () => {
  service = await createTestService()
  owner = await service.createAccount()
  appId = await createTestApp(owner)
})
afterAll(() => service.stop())

async function newRelease() {
  releases += 1
  releaseId = await createTestRelease(owner.api, appId, `1.0.${releases}`)
}

function createPatch(clientPatchId?: string | null) {
  const body = { release_id: releaseId, metadata: { os: 'linux' }, client_patch_id: clientPatchId }
  return owner.api.createPatch({ params: { appId }, body })
}

function listPatches() {
  return owner.api.listReleasePatches({ params: { appId, releaseId } }).then(({ patches }) => patches)
}

async function requestStatus(patchId: number, action: 'rollback' | 'rollforward'): Promise<number> {
  const url = `${service.baseUrl}/api/v1/apps/${appId}/releases/${releaseId}/patches/${patchId}/${action}`
  const response = await fetch(url, { method: 'POST', headers: { authorization: `Bearer ${owner.apiKey}` } })
  expect(await response.text()).toBe('')
  return response.status
}

describe('POST /api/v1/apps/{appId}/patches', () => {
  it('answers 201 with the number 1 for the first patch of each release', async () => {
    await newRelease()
    expect(await createPatch()).toEqual({ id: expect.any(Number), number: 1 })
    expect(await createPatch()).toMatchObject({ number: 2 })
    await newRelease()
    expect(await createPatch()).toMatchObject({ number: 1 })
  })

  it('numbers without gaps when many are created at once', async () => {
    await newRelease()
    const created = await Promise.all(Array.from({ length: 25 }, () => createPatch()))
    const numbers = created.map(({ number }) => number).toSorted((a, b) => a - b)
    expect(numbers).toEqual(Array.from({ length: 25 }, (_, index) => index + 1))
  })

  it('gives the same patch for the same client_patch_id, with its channel, also at once', async () => {
    await newRelease()
    const [first, second] = await Promise.all([createPatch('run-1'), createPatch('run-1')])
    expect(second).toEqual(first)
    expect(first).toMatchObject({ number: 1, client_patch_id: 'run-1' })
    const channelId = await findChannelId(owner.api, appId)
    await owner.api.promotePatch({ params: { appId }, body: { patch_id: first.id, channel_id: channelId } })
    expect(await createPatch('run-1')).toMatchObject({ id: first.id, channel: 'stable' })
    expect(await createPatch('run-2')).toMatchObject({ number: 2 })
    expect(await createPatch(null)).toMatchObject({ number: 3 })
  })

  it('refuses the client_patch_id of a rolled back patch', async () => {
    await newRelease()
    const patch = await createPatch('run-1')
    await owner.api.rollBackPatch({ params: { appId, releaseId, patchId: patch.id } })
    await expect(createPatch('run-1')).rejects.toMatchObject({
      status: 409,
      code: 'patches_create_existing_patch_rolled_back',
    })
  })

  it('does not find the release of another app', async () => {
    await newRelease()
    const other = await createTestApp(owner)
    await expect(
      owner.api.createPatch({ params: { appId: other }, body: { release_id: releaseId } }),
    ).rejects.toMatchObject({ status: 404, details: expect.stringContaining('release_id') })
  })
})

describe('patch artifacts', () => {
  it('hand hash and signature on unchanged, and are never verified against the bytes', async () => {
    await newRelease()
    const patch = await createPatch()
    const hash = sha256(Buffer.from('what the device will have')).toUpperCase()
    const { artifact } = await uploadTestPatchArtifact(owner.api, { appId, patchId: patch.id }, { hash })
    expect(await listPatches()).toEqual([
      {
        id: patch.id,
        number: 1,
        is_rolled_back: false,
        artifacts: [
          {
            id: artifact.id,
            patch_id: patch.id,
            platform: 'android',
            arch: 'aarch64',
            hash,
            size: 500,
            created_at: expect.stringMatching(/Z$/),
          },
        ],
      },
    ])
  })

  it('take the form of the public client, which has neither filename nor can_sideload', async () => {
    await newRelease()
    const patch = await createPatch()
    const form = new FormData()
    for (const [name, value] of Object.entries({ arch: 'arm', platform: 'android', hash: 'b'.repeat(64), size: '3' })) {
      form.set(name, value)
    }
    const response = await fetch(`${service.baseUrl}/api/v1/apps/${appId}/patches/${patch.id}/artifacts`, {
      method: 'POST',
      headers: { authorization: `Bearer ${owner.apiKey}`, 'x-cli-version': '1.6.111' },
      body: form,
    })
    expect(response.status).toBe(200)
    expect(await response.json()).toMatchObject({ patch_id: patch.id, size: 3, upload_method: 'resumable' })
  })

  it('conflict with the code that tells the client whether to go on', async () => {
    await newRelease()
    const patch = await createPatch()
    const { hash } = await uploadTestPatchArtifact(owner.api, { appId, patchId: patch.id })
    const register = (candidate: string) =>
      owner.api.createPatchArtifact({
        params: { appId, patchId: patch.id },
        body: { platform: 'android', arch: 'aarch64', hash: candidate, size: 1 },
      })
    await expect(register(hash)).rejects.toMatchObject({
      status: 409,
      code: 'patch_artifacts_create_existing_artifact',
    })
    await expect(register('c'.repeat(64))).rejects.toMatchObject({
      status: 409,
      code: 'patch_artifacts_create_existing_artifact_hash_mismatch',
    })
  })

  it('are not empty: a device could not even recognize them as patches', async () => {
    await newRelease()
    const patch = await createPatch()
    const body = { platform: 'android', arch: 'arm', hash: 'e'.repeat(64), size: 0 } as const
    await expect(owner.api.createPatchArtifact({ params: { appId, patchId: patch.id }, body })).rejects.toMatchObject({
      status: 400,
      details: expect.stringContaining('size:'),
    })
  })

  it('are not in their own way when the bytes never arrived', async () => {
    await newRelease()
    const patch = await createPatch()
    const params = { appId, patchId: patch.id }
    const body = { platform: 'android', arch: 'aarch64', hash: 'd'.repeat(64), size: 9 } as const
    await owner.api.createPatchArtifact({ params, body })
    await owner.api.createPatchArtifact({ params, body })
    expect((await listPatches())[0]?.artifacts).toEqual([])
    await uploadTestPatchArtifact(owner.api, params)
    expect((await listPatches())[0]?.artifacts).toHaveLength(1)
  })
})

describe('POST /api/v1/apps/{appId}/patches/promote', () => {
  it('moves the patch: it is on one channel at a time', async () => {
    await newRelease()
    const patch = await createPatch()
    const stable = await findChannelId(owner.api, appId)
    const beta = await owner.api.createChannel({ params: { appId }, body: { channel: `beta-${releaseId}` } })
    const promote = (channelId: number) =>
      owner.api.promotePatch({ params: { appId }, body: { patch_id: patch.id, channel_id: channelId } })
    await promote(stable)
    expect(await listPatches()).toMatchObject([{ channel: 'stable' }])
    await promote(beta.id)
    await promote(beta.id)
    expect(await listPatches()).toMatchObject([{ channel: `beta-${releaseId}` }])
  })

  it('finds neither the patch nor the channel of another app', async () => {
    await newRelease()
    const patch = await createPatch()
    const other = await createTestApp(owner)
    const promote = (app: string, patchId: number, channelId: number) =>
      owner.api.promotePatch({ params: { appId: app }, body: { patch_id: patchId, channel_id: channelId } })
    const [here, there] = [await findChannelId(owner.api, appId), await findChannelId(owner.api, other)]
    await expect(promote(other, patch.id, there)).rejects.toMatchObject({
      status: 404,
      details: expect.stringContaining('patch_id'),
    })
    await expect(promote(appId, patch.id, there)).rejects.toMatchObject({
      status: 404,
      details: expect.stringContaining('channel_id'),
    })
    await promote(appId, patch.id, here)
  })
})

describe('rollback and roll-forward', () => {
  it('answer 204, and 304 when it was so already', async () => {
    await newRelease()
    const patch = await createPatch()
    expect(await requestStatus(patch.id, 'rollforward')).toBe(304)
    expect(await requestStatus(patch.id, 'rollback')).toBe(204)
    expect(await requestStatus(patch.id, 'rollback')).toBe(304)
    expect(await listPatches()).toMatchObject([{ is_rolled_back: true }])
    expect(await requestStatus(patch.id, 'rollforward')).toBe(204)
    expect(await listPatches()).toMatchObject([{ is_rolled_back: false }])
  })

  it('do not find a patch under another release', async () => {
    await newRelease()
    const patch = await createPatch()
    await newRelease()
    const params = { appId, releaseId, patchId: patch.id }
    await expect(owner.api.rollBackPatch({ params })).rejects.toMatchObject({ status: 404 })
    await expect(owner.api.updatePatch({ params, body: { notes: 'x' } })).rejects.toMatchObject({ status: 404 })
  })
})

describe('PATCH …/patches/{patchId}', () => {
  it('sets notes, keeps them on null, clears them on the empty text', async () => {
    await newRelease()
    const patch = await createPatch()
    const update = (notes: string | null) =>
      owner.api.updatePatch({ params: { appId, releaseId, patchId: patch.id }, body: { notes } })
    await update('fixes login')
    await update(null)
    expect(await listPatches()).toMatchObject([{ notes: 'fixes login' }])
    await update('')
    expect((await listPatches())[0]).not.toHaveProperty('notes')
  })
})
