import { basename } from 'node:path'
import { sha256 } from './publishing.ts'

const chunkBytes = 8 * 1024 ** 2

/**
 * Sends what the public command line client sends, the way it sends it, and reads what it reads: JSON as text/plain, forms
 * for artifacts, chunks for their bytes, no credential on downloads. Written from the published client (1.6.119).
 */
export type CommandLineClient = {
  call: (method: string, path: string, body?: unknown) => Promise<{ status: number; body: unknown }>
  createArtifact: (path: string, fields: Record<string, string>, bytes: Buffer) => Promise<number>
  download: (url: string) => Promise<Buffer>
}

export function createCommandLineClient(options: {
  hostedUrl: string
  token: string
  version: string
}): CommandLineClient {
  const common = {
    authorization: `Bearer ${options.token}`,
    'x-version': '0.9.0+1',
    'x-cli-version': options.version,
    'user-agent': 'Dart/3.9 (dart:io)',
    'accept-encoding': 'gzip',
  }
  const api = `${options.hostedUrl}/api/v1`

  const upload = async (url: string, method: string | undefined, bytes: Buffer) => {
    if (method === 'resumable') await uploadInChunks(url, bytes)
    else await uploadAsForm(url, bytes)
  }
  const uploadAsForm = async (url: string, bytes: Buffer) => {
    const form = new FormData()
    form.set('file', new Blob([new Uint8Array(bytes)], { type: 'application/octet-stream' }), 'artifact')
    const response = await fetch(url, { method: 'POST', headers: common, body: form })
    if (!response.ok) throw new Error(`upload failed: ${response.status}`)
  }
  /** 308 says where to go on; 200 and 201 mean done, wherever they come; anything else is a failure. */
  const uploadInChunks = async (url: string, bytes: Buffer) => {
    let offset = 0
    while (offset < bytes.length) {
      const end = Math.min(offset + chunkBytes, bytes.length)
      const response = await fetch(url, {
        method: 'PUT',
        headers: { ...common, 'content-range': `bytes ${offset}-${end - 1}/${bytes.length}` },
        body: new Uint8Array(bytes.subarray(offset, end)),
      })
      if (response.status === 200 || response.status === 201) return
      if (response.status !== 308) throw new Error(`upload failed: ${response.status}`)
      const next = Number(/-(\d+)$/.exec(response.headers.get('range') ?? '-1')?.[1] ?? -1) + 1
      if (next <= offset) throw new Error('upload makes no progress')
      offset = next
    }
  }
  return {
    async call(method, path, body) {
      const response = await fetch(api + path, {
        method,
        headers: body === undefined ? common : { ...common, 'content-type': 'text/plain; charset=utf-8' },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      })
      const text = await response.text()
      return { status: response.status, body: text === '' ? undefined : JSON.parse(text) }
    },
    async createArtifact(path, fields, bytes) {
      const form = new FormData()
      for (const [name, value] of Object.entries({ ...fields, size: String(bytes.length) })) form.set(name, value)
      const response = await fetch(api + path, { method: 'POST', headers: common, body: form })
      if (!response.ok) return response.status
      const artifact = (await response.json()) as { url: string; upload_method?: string }
      await upload(artifact.url, artifact.upload_method, bytes)
      return response.status
    },
    async download(url) {
      const response = await fetch(url, { headers: { 'user-agent': common['user-agent'], 'accept-encoding': 'gzip' } })
      if (response.status !== 200) throw new Error(`download failed: ${response.status}`)
      return Buffer.from(await response.arrayBuffer())
    },
  }
}

/** The fields of a release artifact, as the client fills them. */
export function describeReleaseArtifact(arch: string, platform: string, bytes: Buffer, path: string) {
  const can_sideload = String(['aab', 'runner', 'app', 'bundle', 'win_archive'].includes(arch))
  return { arch, platform, hash: sha256(bytes), filename: basename(path), can_sideload }
}
