import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { sha256 } from '../support/publishing.ts'
import type { TestAccount, TestService } from '../support/test-service.ts'

export { sha256 }

export type Publisher = {
  appId: string
  releaseId: number
  patchId: number
  /** Each one has an arch of its own unless told, so that tests stay out of each other's way. */
  registerRelease: (
    bytes: Buffer,
    options?: { arch?: string; hash?: string; size?: number },
  ) => Promise<{ id: number; arch: string; url: string; key: string }>
  registerPatch: (
    bytes: Buffer,
    options?: { arch?: string; hash?: string },
  ) => Promise<{ id: number; arch: string; url: string; key: string; hash: string }>
  setStatus: (status: 'draft' | 'active') => Promise<void>
  /** What the release lists for an arch: ids of the uploaded artifacts. */
  listIds: (arch: string) => Promise<number[]>
  downloadUrl: (arch: string) => Promise<string>
}

/** An app with a release and a patch, for Android. */
export async function createPublisher({ api, organizationId }: TestAccount): Promise<Publisher> {
  const platform = 'android'
  const { id: appId } = await api.createApp({ body: { display_name: 'Atlas', organization_id: organizationId } })
  const created = await api.createRelease({ params: { appId }, body: { version: '1.0.0+1', flutter_revision: 'f00' } })
  const releaseId = created.release.id
  const { id: patchId } = await api.createPatch({ params: { appId }, body: { release_id: releaseId } })
  let count = 0
  const nextArch = () => `arch-${++count}`
  const list = async (arch: string) =>
    (await api.listReleaseArtifacts({ params: { appId, releaseId }, query: { arch, platform } })).artifacts
  return {
    appId,
    releaseId,
    patchId,
    async registerRelease(bytes, { arch = nextArch(), hash = sha256(bytes), size = bytes.length } = {}) {
      const body = { platform, arch, hash, size, can_sideload: false } as const
      const { id, url } = await api.createReleaseArtifact({ params: { appId, releaseId }, body })
      return { id, arch, url, key: readKey(url) }
    },
    async registerPatch(bytes, { arch = nextArch(), hash = sha256(Buffer.from(arch)) } = {}) {
      const body = { platform, arch, hash, size: bytes.length } as const
      const { id, url } = await api.createPatchArtifact({ params: { appId, patchId }, body })
      return { id, arch, url, key: readKey(url), hash }
    },
    async setStatus(status) {
      await api.updateRelease({ params: { appId, releaseId }, body: { status, platform } })
    },
    listIds: async (arch) => (await list(arch)).map(({ id }) => id),
    async downloadUrl(arch) {
      const [artifact] = await list(arch)
      if (artifact === undefined) throw new Error(`${arch} is not uploaded`)
      return artifact.url
    },
  }
}

export function readKey(url: string): string {
  return new URL(url).pathname.split('/').at(-1) ?? ''
}

/** Names of the files that the store has for a blob. */
export async function listBlobFiles(service: TestService, key: string): Promise<string[]> {
  const names = await readdir(join(service.dataDir, 'blobs'), { recursive: true })
  return names.map((name) => name.split('/').at(-1) ?? '').filter((name) => name.startsWith(key))
}

export async function findReceivedBytes(service: TestService, key: string): Promise<number | undefined> {
  const row = await service.deps.db
    .selectFrom('blobs')
    .select('received_bytes')
    .where('key', '=', key)
    .executeTakeFirst()
  return row?.received_bytes
}
