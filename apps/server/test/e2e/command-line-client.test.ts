import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  type CommandLineClient,
  createCommandLineClient,
  describeReleaseArtifact,
} from '../support/command-line-client.ts'
import { sha256 } from '../support/publishing.ts'
import { createTestService, type TestService } from '../support/test-service.ts'

type Id = { id: number }
type Named = Id & { name: string }

let service: TestService
let token: string

beforeAll(async () => {
  service = await createTestService()
  token = (await service.createAccount({ permission: 'full' })).apiKey
})
afterAll(() => service.stop())

async function read<Body>(client: CommandLineClient, path: string): Promise<Body> {
  const { status, body } = await client.call('GET', path)
  expect(status).toBe(200)
  return body as Body
}

/** `shorebird init`: the first organization, and an app in it. */
async function init(client: CommandLineClient): Promise<string> {
  const { organizations } = await read<{ organizations: { organization: Id; role: string }[] }>(
    client,
    '/organizations',
  )
  const created = await client.call('POST', '/apps', {
    display_name: 'atlas',
    organization_id: organizations[0]?.organization.id,
  })
  expect(created.status).toBe(200)
  const { apps } = await read<{ apps: { app_id: string; display_name: string }[] }>(client, '/apps')
  const { id } = created.body as { id: string }
  expect(apps).toContainEqual(expect.objectContaining({ app_id: id, display_name: 'atlas' }))
  return id
}

/** `shorebird release`: the draft is set twice, then the artifacts, then the platform is active. */
async function release(client: CommandLineClient, appId: string, platform: string, files: Record<string, Buffer>) {
  const version = '1.2.3+4'
  const listed = await read<{ releases: (Id & { version: string })[] }>(client, `/apps/${appId}/releases`)
  let releaseId = listed.releases.find((candidate) => candidate.version === version)?.id
  if (releaseId === undefined) {
    const body = { version, flutter_revision: 'f'.repeat(40), flutter_version: '3.35.1', display_name: null }
    const created = await client.call('POST', `/apps/${appId}/releases`, body)
    releaseId = (created.body as { release: Id }).release.id
  }
  const path = `/apps/${appId}/releases/${releaseId}`
  const draft = { status: 'draft', platform, metadata: null, notes: null }
  expect((await client.call('PATCH', path, draft)).status).toBe(204)
  expect((await client.call('PATCH', path, draft)).status).toBe(204)
  for (const [arch, bytes] of Object.entries(files)) {
    const fields = describeReleaseArtifact(arch, platform, bytes, `build/${arch}.bin`)
    expect(await client.createArtifact(`${path}/artifacts`, fields, bytes)).toBe(200)
  }
  const active = { status: 'active', platform, metadata: { generated_apks: false, environment: {} }, notes: null }
  expect((await client.call('PATCH', path, active)).status).toBe(204)
  return releaseId
}

/** `shorebird patch`: downloads what was released, uploads diffs, and promotes to a track, which it creates if need be. */
async function patch(
  client: CommandLineClient,
  ids: { appId: string; releaseId: number },
  options: { platform: string; primary: string; diffs: Record<string, Buffer>; track: string },
) {
  const { appId, releaseId } = ids
  const artifacts = (arch: string) =>
    read<{ artifacts: { url: string }[] }>(
      client,
      `/apps/${appId}/releases/${releaseId}/artifacts?arch=${arch}&platform=${options.platform}`,
    )
  const [primary] = (await artifacts(options.primary)).artifacts
  expect((await artifacts(`${options.platform}_supplement`)).artifacts).toEqual([])
  const released = await client.download(primary?.url ?? '')
  const created = await client.call('POST', `/apps/${appId}/patches`, { release_id: releaseId, metadata: {} })
  expect(created.status).toBe(201)
  const { id, number } = created.body as Id & { number: number }
  for (const [arch, bytes] of Object.entries(options.diffs)) {
    const fields = { arch, platform: options.platform, hash: sha256(Buffer.from(`patched ${arch}`)) }
    expect(await client.createArtifact(`/apps/${appId}/patches/${id}/artifacts`, fields, bytes)).toBe(200)
  }
  const channels = await read<Named[]>(client, `/apps/${appId}/channels`)
  let channel = channels.find(({ name }) => name === options.track)
  if (channel === undefined) {
    channel = (await client.call('POST', `/apps/${appId}/channels`, { channel: options.track })).body as Named
  }
  const promoted = await client.call('POST', `/apps/${appId}/patches/promote`, { patch_id: id, channel_id: channel.id })
  expect(promoted.status).toBe(204)
  return { number, released }
}

describe.each([
  ['1.6.119', 'in chunks'],
  ['1.6.110', 'as a form'],
])('the command line client %s, which uploads %s', (version) => {
  it('releases two platforms, patches both, and devices of each are offered theirs', async () => {
    const client = createCommandLineClient({ hostedUrl: service.baseUrl, token, version })
    const appId = await init(client)
    // Larger than two chunks, so that the client must go on where the service says.
    const bundle = randomBytes(20 * 1024 ** 2 + 7)
    const libraries = { arm: randomBytes(3000), aarch64: randomBytes(3000) }
    const releaseId = await release(client, appId, 'android', { ...libraries, aab: bundle })
    expect(await release(client, appId, 'ios', { xcarchive: randomBytes(5000), runner: randomBytes(5000) })).toBe(
      releaseId,
    )

    const android = await patch(
      client,
      { appId, releaseId },
      {
        platform: 'android',
        primary: 'aab',
        diffs: { arm: randomBytes(300), aarch64: randomBytes(300) },
        track: 'stable',
      },
    )
    expect(android.released.equals(bundle)).toBe(true)
    const ios = await patch(
      client,
      { appId, releaseId },
      { platform: 'ios', primary: 'xcarchive', diffs: { aarch64: randomBytes(300) }, track: 'beta' },
    )
    expect([android.number, ios.number]).toEqual([1, 2])

    const check = (platform: 'android' | 'ios', channel: string) =>
      service.client().checkPatch({
        body: { app_id: appId, release_version: '1.2.3+4', platform, arch: 'aarch64', channel },
      })
    expect((await check('android', 'stable')).patch?.number).toBe(1)
    expect((await check('ios', 'stable')).patch_available).toBe(false)
    expect((await check('ios', 'beta')).patch?.number).toBe(2)
  })

  it('may run a finished release again: every artifact is a 409, and what is there stays', async () => {
    const client = createCommandLineClient({ hostedUrl: service.baseUrl, token, version })
    const appId = await init(client)
    const aab = randomBytes(1000)
    const releaseId = await release(client, appId, 'android', { aab })
    const path = `/apps/${appId}/releases/${releaseId}/artifacts`
    const fields = describeReleaseArtifact('aab', 'android', aab, 'aab')
    expect(await client.createArtifact(path, fields, aab)).toBe(409)
    const { artifacts } = await read<{ artifacts: { url: string }[] }>(client, `${path}?`)
    expect(artifacts).toHaveLength(1)
    expect((await client.download(artifacts[0]?.url ?? '')).equals(aab)).toBe(true)
  })

  it('measures its transfer speed', async () => {
    const client = createCommandLineClient({ hostedUrl: service.baseUrl, token, version })
    const { upload_url } = await read<{ upload_url: string }>(client, '/diagnostics/gcp_upload')
    const form = new FormData()
    form.set('file', new Blob([new Uint8Array(5_000_000)]), 'speed')
    expect((await fetch(upload_url, { method: 'POST', body: form })).status).toBe(204)
    const { download_url } = await read<{ download_url: string }>(client, '/diagnostics/gcp_download')
    expect((await client.download(download_url)).length).toBe(16_000_000)
  })
})
