import { describe, expect, it } from 'vitest'
import { createClient } from '../src/index.ts'

type Sent = { url: string; init: RequestInit }

function createRecordingClient(response: Response, baseUrl = 'https://push.example.com/') {
  const sent: Sent[] = []
  const client = createClient({
    baseUrl,
    token: 'sb_api_x',
    headers: { 'x-cli-version': '1.6.119' },
    fetch: async (url, init) => {
      sent.push({ url, init })
      return response
    },
  })
  return { client, sent }
}

describe('the SDK', () => {
  it('fills and encodes the path, and leaves out what is undefined in the query', async () => {
    const { client, sent } = createRecordingClient(Response.json({ artifacts: [] }))
    await client.listReleaseArtifacts({
      params: { appId: 'a/b', releaseId: 7 },
      query: { arch: 'x&y', platform: undefined },
    })
    expect(sent[0]?.url).toBe('https://push.example.com/api/v1/apps/a%2Fb/releases/7/artifacts?arch=x%26y')
    expect(sent[0]?.init).toEqual({
      method: 'GET',
      headers: { 'x-cli-version': '1.6.119', authorization: 'Bearer sb_api_x' },
    })
  })

  it('keeps a path prefix of the base URL', async () => {
    const { client, sent } = createRecordingClient(Response.json({ apps: [] }), 'https://example.com/godwit')
    await client.listApps()
    expect(sent[0]?.url).toBe('https://example.com/godwit/api/v1/apps')
  })

  it('sends no credential where none is needed', async () => {
    const { client, sent } = createRecordingClient(Response.json({ patch_available: false }))
    await client.checkPatch({
      body: { app_id: 'a', channel: 'stable', release_version: '1', platform: 'ios', arch: 'aarch64' },
    })
    expect(sent[0]?.init.headers).not.toHaveProperty('authorization')
  })

  it('resolves to nothing for 204 and 304', async () => {
    const params = { appId: 'a', releaseId: 1, patchId: 1 }
    for (const status of [204, 304]) {
      const { client } = createRecordingClient(new Response(null, { status }))
      expect(await client.rollBackPatch({ params })).toBeUndefined()
    }
  })

  it('throws what the service says', async () => {
    const body = { code: 'channel_exists', message: 'No.', details: 'channel: is taken' }
    const { client } = createRecordingClient(Response.json(body, { status: 409 }))
    await expect(client.createChannel({ params: { appId: 'a' }, body: { channel: 'x' } })).rejects.toMatchObject({
      name: 'ApiError',
      status: 409,
      code: 'channel_exists',
      message: 'No.',
      details: 'channel: is taken',
    })
  })

  it('throws the status when what answers is not the service', async () => {
    const { client } = createRecordingClient(new Response('<html>Bad Gateway</html>', { status: 502 }))
    await expect(client.listApps()).rejects.toMatchObject({ status: 502, code: 'unknown' })
  })
})
