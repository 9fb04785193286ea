import { randomBytes } from 'node:crypto'
import type { ActivityImportLine } from '@godwit/contract'
import { sweepBlobs } from '../../src/transfers/sweep-blobs.ts'
import { createMember, type Member, signIn, turnOnSecondFactor } from '../sign-in/accounts.ts'
import {
  createTestApp,
  createTestRelease,
  findChannelId,
  registerTestReleaseArtifact,
  uploadTestPatchArtifact,
  uploadTestReleaseArtifact,
} from '../support/publishing.ts'
import type { TestAccount, TestService } from '../support/test-service.ts'
import { putChunk } from '../transfers/http.ts'

export type BusyService = {
  owner: TestAccount
  member: Member
  showCode: (at: Date) => string
  serviceAccountKey: string
  params: Record<string, string | number>
  /** An upload of which half has arrived. */
  unfinished: { url: string; bytes: Buffer }
}

const device = { platform: 'android', arch: 'aarch64', release_version: '1.0.0' } as const

/** Something in every feature: people, machines, apps, releases, patches, devices, the audit log, an upload that runs. */
export async function makeBusy(service: TestService, now: Date): Promise<BusyService> {
  const owner = await service.createAccount({ email: 'owner@example.com' })
  const { api } = owner
  const member = await createMember(service)
  await signIn(member)
  const showCode = await turnOnSecondFactor(member, () => now)
  const { id: organizationId } = await api.createOrganization({ body: { name: 'Atlas "tabs\tand\\slashes\n" Ö' } })
  await api.addOrganizationUser({ params: { organizationId }, body: { email: member.email, role: 'developer' } })
  await api.createInvitation({
    params: { organizationId },
    body: { email: 'later@example.com', role: 'viewer', app_id: null },
  })
  const { id: serviceAccountId } = await api.createServiceAccount({ params: { organizationId }, body: { name: 'CI' } })
  const { key: serviceAccountKey } = await api.createServiceAccountKey({
    params: { organizationId, serviceAccountId },
    body: { name: 'CI', expires_in: 'none' },
  })
  const appId = await createTestApp({ api, organizationId })
  const releaseId = await createTestRelease(api, appId, device.release_version)
  const patchId = await publishPatch(owner, { appId, releaseId })
  await uploadTestReleaseArtifact(api, { appId, releaseId }, { arch: 'aarch64', bytes: randomBytes(3_000_000) })
  await uploadTestReleaseArtifact(api, { appId, releaseId }, { arch: 'arm', bytes: Buffer.alloc(0) })
  const gone = await createTestApp({ api, organizationId }, 'Gone')
  await checkAndReport(service, gone, 'of-a-deleted-app', now)
  await api.deleteApp({ params: { appId: gone } })
  const lines = Array.from({ length: 500 }, (_, n): ActivityImportLine => {
    const time = new Date(now.getTime() - n * 7_200_000).toISOString()
    return { ...device, client_id: `imported-${n % 90}`, time }
  })
  await api.importActivity({ params: { appId }, body: lines.map((line) => `${JSON.stringify(line)}\n`).join('') })
  for (let n = 0; n < 20; n += 1) await checkAndReport(service, appId, `device-${n}`, now)
  const { bytes, artifact } = await registerTestReleaseArtifact(
    api,
    { appId, releaseId },
    { platform: 'ios', arch: 'xcarchive' },
  )
  await putChunk(artifact.url, bytes, 0, bytes.length / 2 - 1)
  const params = { organizationId, serviceAccountId, appId, releaseId, patchId }
  return { owner, member, showCode, serviceAccountKey, params, unfinished: { url: artifact.url, bytes } }
}

async function publishPatch({ api }: TestAccount, input: { appId: string; releaseId: number }) {
  const { appId, releaseId } = input
  const { id: patchId } = await api.createPatch({ params: { appId }, body: { release_id: releaseId } })
  await uploadTestPatchArtifact(api, { appId, patchId })
  const channelId = await findChannelId(api, appId)
  await api.promotePatch({ params: { appId }, body: { patch_id: patchId, channel_id: channelId } })
  return patchId
}

export async function checkPatch(service: TestService, appId: string, clientId: string) {
  return await service
    .client()
    .checkPatch({ body: { ...device, app_id: appId, client_id: clientId, channel: 'stable' } })
}

async function checkAndReport(service: TestService, appId: string, clientId: string, now: Date): Promise<void> {
  await checkPatch(service, appId, clientId)
  const event = {
    ...device,
    app_id: appId,
    client_id: clientId,
    patch_number: 1,
    timestamp: Math.floor(now.getTime() / 1000),
  }
  await service.client().createPatchEvent({ body: { event: { ...event, type: '__patch_install__' } } })
}

/** Does everything that changes rows and bytes, over and over, until told to stop. Returns how often. */
export function keepBusy(
  service: TestService,
  { owner, params }: BusyService,
  now: Date,
): { stop: () => Promise<number> } {
  let isStopping = false
  const work = async () => {
    let rounds = 0
    for (; !isStopping; rounds += 1) {
      const appId = await createTestApp(
        { api: owner.api, organizationId: Number(params.organizationId) },
        `App ${rounds}`,
      )
      const releaseId = await createTestRelease(owner.api, appId, device.release_version)
      await uploadTestReleaseArtifact(owner.api, { appId, releaseId }, { arch: 'aarch64', bytes: randomBytes(50_000) })
      await publishPatch(owner, { appId, releaseId })
      await checkAndReport(service, appId, `busy-${rounds}`, now)
      if (rounds % 3 === 0) await owner.api.deleteApp({ params: { appId } })
      await sweepBlobs(service.deps)
    }
    return rounds
  }
  const working = work()
  return {
    stop: async () => {
      isStopping = true
      return await working
    },
  }
}
