import { readFile } from 'node:fs/promises'
import { request } from 'node:http'
import type { PatchCheckResponse } from '@godwit/contract'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { applyPatch } from '../support/apply-patch.ts'
import { findChannelId, sha256 } from '../support/publishing.ts'
import { createServerProcess, type ServerProcess } from '../support/server-process.ts'

const fixture = (name: string) => readFile(new URL(`../fixtures/${name}`, import.meta.url))
/** SHA-256 of what the device has after applying the patch; fixtures/README.md says where it comes from. */
const patchedHash = 'bb529161728e2cdd37c9290f5c2a97599e0b1b6d0384ba2e64d7a9cc68d952d8'

let server: ServerProcess
let apk: Buffer
let bundle: Buffer
let archive: Buffer
let patch: Buffer

let appId = ''
let releaseId = 0
let patchId = 0
let stableId = 0

beforeAll(async () => {
  server = await createServerProcess()
  apk = await fixture('real-tc-debug.apk')
  bundle = await fixture('aab-basic.aab')
  archive = await fixture('ios-xcarchive.zip')
  patch = await fixture('real-tc-debug.patch')
  await server.start()
})
afterAll(() => server.remove())

/** Every step of this story is followed by a SIGKILL and a restart: what was answered must still be so. */
function step(name: string, run: () => Promise<void>): void {
  it(name, async () => {
    await run()
    await server.kill()
    await server.start()
  })
}

function check(overrides: Record<string, unknown> = {}): Promise<PatchCheckResponse> {
  const body = {
    app_id: appId,
    channel: 'stable',
    release_version: '1.0.0+1',
    platform: 'android',
    arch: 'aarch64',
    client_id: '7d4f2f0a-9a58-4d6c-8d3f-0d5a5a5a5a5a',
    ...overrides,
  }
  return server.api.checkPatch({ body: body as never })
}

async function registerReleaseArtifact(arch: string, platform: 'android' | 'ios', bytes: Buffer) {
  const body = { arch, platform, hash: sha256(bytes), size: bytes.length, can_sideload: arch === 'aab' } as const
  const { url } = await server.api.createReleaseArtifact({ params: { appId, releaseId }, body })
  return url
}

async function listArtifacts() {
  const { artifacts } = await server.api.listReleaseArtifacts({ params: { appId, releaseId } })
  return artifacts
}

/** Sends the beginning of an upload, and kills the server while it waits for the rest. */
async function beginUploadAndKill(url: string, method: string, headers: Record<string, string>, bytes: Buffer) {
  const upload = request(url, { method, headers: { ...headers, 'content-length': String(bytes.length) } })
  upload.on('error', () => {})
  await new Promise<void>((resolve) => {
    upload.write(bytes.subarray(0, bytes.length / 2), () => resolve())
  })
  // The server must have begun to read: an answered request on another connection comes after what arrived before it.
  await server.api.getHealth()
  await server.kill()
  upload.destroy()
  await server.start()
}

function put(url: string, range: string, bytes: Buffer = Buffer.alloc(0)) {
  return fetch(url, { method: 'PUT', headers: { 'content-range': range }, body: new Uint8Array(bytes) })
}

describe('a release and its patch, on a server that is killed after every step', () => {
  step('the app is created', async () => {
    const { organizations } = await server.api.listOrganizations()
    const organizationId = organizations[0]?.organization.id ?? 0
    const app = await server.api.createApp({ body: { display_name: 'TCActivity', organization_id: organizationId } })
    appId = app.id
  })

  step('the release is created as a draft', async () => {
    const { release } = await server.api.createRelease({
      params: { appId },
      body: { version: '1.0.0+1', flutter_revision: 'f'.repeat(40), flutter_version: '3.35.1' },
    })
    releaseId = release.id
    const params = { appId, releaseId }
    await server.api.updateRelease({
      params,
      body: { status: 'draft', platform: 'android', metadata: null, notes: null },
    })
  })

  step('the APK arrives by multipart POST, in the second try', async () => {
    const url = await registerReleaseArtifact('aarch64', 'android', apk)
    const form = new FormData()
    form.set('file', new Blob([new Uint8Array(apk)]), 'libapp.so')
    const encoded = new Request('http://localhost', { method: 'POST', body: form })
    const contentType = encoded.headers.get('content-type') ?? ''
    const bytes = Buffer.from(await encoded.arrayBuffer())
    await beginUploadAndKill(url, 'POST', { 'content-type': contentType }, bytes)
    expect(await listArtifacts()).toEqual([])
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': contentType, authorization: 'Bearer not-needed-here' },
      body: new Uint8Array(bytes),
    })
    expect(response.status).toBe(200)
  })

  step('the bundle arrives by raw POST, in the second try', async () => {
    const url = await registerReleaseArtifact('aab', 'android', bundle)
    await beginUploadAndKill(url, 'POST', { 'content-type': 'application/octet-stream' }, bundle)
    const response = await fetch(url, { method: 'POST', body: new Uint8Array(bundle) })
    expect(response.status).toBe(200)
  })

  step('the archive arrives by raw PUT, in the second try', async () => {
    const url = await registerReleaseArtifact('xcarchive', 'ios', archive)
    await beginUploadAndKill(url, 'PUT', {}, archive)
    const response = await fetch(url, { method: 'PUT', body: new Uint8Array(archive) })
    expect(response.status).toBe(200)
  })

  step('another copy arrives by resumable PUT, resumed after a SIGKILL between and within chunks', async () => {
    const url = await registerReleaseArtifact('x86_64', 'android', apk)
    const total = apk.length
    expect((await put(url, `bytes */${total}`)).headers.get('range')).toBeNull()

    const first = await put(url, `bytes 0-4095/${total}`, apk.subarray(0, 4096))
    expect([first.status, first.headers.get('range')]).toEqual([308, 'bytes=0-4095'])
    await server.kill()
    await server.start()

    await beginUploadAndKill(url, 'PUT', { 'content-range': `bytes 4096-${total - 1}/${total}` }, apk.subarray(4096))
    const status = await put(url, `bytes */${total}`)
    expect(status.status).toBe(308)
    const stored = Number(/-(\d+)$/.exec(status.headers.get('range') ?? '')?.[1]) + 1
    expect(stored).toBeGreaterThanOrEqual(4096)
    expect(stored).toBeLessThan(total)

    const rest = await put(url, `bytes 4096-${total - 1}/${total}`, apk.subarray(4096))
    expect(rest.status).toBe(200)
    expect((await put(url, `bytes */${total}`)).status).toBe(200)
    expect((await put(url, `bytes 4096-${total - 1}/${total}`, apk.subarray(4096))).status).toBe(200)
  })

  step('the release is active and its artifacts are listed and downloaded byte for byte', async () => {
    const params = { appId, releaseId }
    for (const platform of ['android', 'ios'] as const) {
      await server.api.updateRelease({ params, body: { status: 'active', platform, metadata: { cli: '1.6.119' } } })
    }
    const { release } = await server.api.getRelease({ params })
    expect(release.platform_statuses).toEqual({ android: 'active', ios: 'active' })
    const artifacts = await listArtifacts()
    const expected = { aarch64: apk, aab: bundle, xcarchive: archive, x86_64: apk }
    expect(artifacts.map(({ arch }) => arch)).toEqual(Object.keys(expected))
    for (const [index, bytes] of Object.values(expected).entries()) {
      const response = await fetch(artifacts[index]?.url ?? '')
      expect(Buffer.from(await response.arrayBuffer())).toEqual(bytes)
      expect(artifacts[index]).toMatchObject({ hash: sha256(bytes), size: bytes.length })
    }
  })

  step('the patch is created, its artifact registered and uploaded', async () => {
    const created = await server.api.createPatch({
      params: { appId },
      body: { release_id: releaseId, metadata: {}, client_patch_id: 'run-1' },
    })
    patchId = created.id
    expect(created.number).toBe(1)
    const { url } = await server.api.createPatchArtifact({
      params: { appId, patchId },
      body: { arch: 'aarch64', platform: 'android', hash: patchedHash, hash_signature: 'c2lnbmVk', size: patch.length },
    })
    await beginUploadAndKill(url, 'PUT', { 'content-range': `bytes 0-${patch.length - 1}/${patch.length}` }, patch)
    const response = await put(url, `bytes 0-${patch.length - 1}/${patch.length}`, patch)
    expect(response.status).toBe(200)
    expect(await check()).toEqual({ patch_available: false })
  })

  step('the patch is promoted, and the next check is offered it', async () => {
    stableId = await findChannelId(server.api, appId)
    await server.api.promotePatch({ params: { appId }, body: { patch_id: patchId, channel_id: stableId } })
    expect(await check()).toMatchObject({ patch_available: true, patch: { number: 1 } })
  })

  step('a device fetches it with a resume, and has the patched file', async () => {
    const offer = await check()
    expect(offer.patch).toMatchObject({ number: 1, hash: patchedHash, hash_signature: 'c2lnbmVk' })
    const url = offer.patch?.download_url ?? ''
    const beginning = await fetch(url)
    const reader = beginning.body?.getReader()
    const firstBytes = Buffer.from((await reader?.read())?.value ?? []).subarray(0, 7000)
    await reader?.cancel()
    await server.kill()
    await server.start()

    expect((await check()).patch?.download_url).toBe(url)
    const rest = await fetch(url, { headers: { range: `bytes=${firstBytes.length}-` } })
    expect(rest.status).toBe(206)
    expect(rest.headers.get('content-range')).toBe(`bytes ${firstBytes.length}-${patch.length - 1}/${patch.length}`)
    expect(rest.headers.get('content-encoding')).toBeNull()
    const fetched = Buffer.concat([firstBytes, Buffer.from(await rest.arrayBuffer())])
    expect(sha256(applyPatch(apk, fetched))).toBe(patchedHash)

    const beyond = await fetch(url, { headers: { range: `bytes=${patch.length}-` } })
    expect(beyond.status).toBe(200)
    expect(Buffer.from(await beyond.arrayBuffer())).toEqual(patch)
  })

  step('the device reports that it runs the patch', async () => {
    const event = {
      app_id: appId,
      arch: 'aarch64',
      client_id: '7d4f2f0a-9a58-4d6c-8d3f-0d5a5a5a5a5a',
      type: '__patch_install__',
      patch_number: 1,
      platform: 'android',
      release_version: '1.0.0+1',
      timestamp: 1_790_000_000,
      message: null,
    } as const
    await server.api.createPatchEvent({ body: { event } })
    await server.api.createPatchEvent({ body: { event } })
  })

  step('the patch is rolled back: devices uninstall it', async () => {
    await server.api.rollBackPatch({ params: { appId, releaseId, patchId } })
    expect(await check()).toEqual({ patch_available: false, rolled_back_patch_numbers: [1] })
  })

  step('the patch is rolled forward: devices are offered it again', async () => {
    expect(await check()).toEqual({ patch_available: false, rolled_back_patch_numbers: [1] })
    await server.api.rollForwardPatch({ params: { appId, releaseId, patchId } })
    expect(await check()).toMatchObject({ patch_available: true, patch: { number: 1 } })
  })

  it('at the end everything is as it was left, and nothing else', async () => {
    const { apps } = await server.api.listApps()
    expect(apps).toMatchObject([{ app_id: appId, latest_release_version: '1.0.0+1', latest_patch_number: 1 }])
    const { patches } = await server.api.listReleasePatches({ params: { appId, releaseId } })
    expect(patches).toMatchObject([
      { id: patchId, number: 1, channel: 'stable', is_rolled_back: false, artifacts: [{ hash: patchedHash }] },
    ])
    expect(await listArtifacts()).toHaveLength(4)
    expect(await check({ arch: 'x86_64' })).toEqual({ patch_available: false })
    expect(await check({ channel: 'beta' })).toEqual({ patch_available: false })
  })
})
