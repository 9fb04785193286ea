import { randomBytes } from 'node:crypto'
import { Readable } from 'node:stream'
import type { AuditEvent } from '@godwit/contract'
import type { Client } from '@godwit/sdk'
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { finishUpload } from '../../src/transfers/finish-upload.ts'
import {
  createTestApp,
  createTestRelease,
  findChannelId,
  registerTestReleaseArtifact,
  sha256,
  uploadTestReleaseArtifact,
} from '../support/publishing.ts'
import { createTestService, type TestAccount, type TestService } from '../support/test-service.ts'
import { breakAuditLog, breakCommits, readAppTables, repairAuditLog, repairCommits } from './break-audit-log.ts'

let service: TestService
let owner: TestAccount
let colleague: TestAccount
let stranger: TestAccount
/** The owner, from a client that names itself. */
let api: Client
let teamId: number

const requestHeaders = { 'user-agent': 'the-client/1', 'x-request-id': 'request-7' }
const version = '1.0.0+1'

beforeAll(async () => {
  service = await createTestService()
  owner = await service.createAccount()
  colleague = await service.createAccount()
  stranger = await service.createAccount()
  api = service.client(owner.apiKey, requestHeaders)
  teamId = (await owner.api.createOrganization({ body: { name: 'Team' } })).id
})
afterAll(() => service.stop())

async function listEvents(organizationId = owner.organizationId): Promise<AuditEvent[]> {
  return (await owner.api.listAuditLogs({ params: { organizationId }, query: { per_page: '100' } })).data
}

/** The events that something leaves in the owner's personal organization, oldest first. */
async function watch(act: () => Promise<unknown>): Promise<AuditEvent[]> {
  const newest = (await listEvents())[0]?.metadata.uid
  await act()
  const events = await listEvents()
  const end = events.findIndex(({ metadata }) => metadata.uid === newest)
  return events.slice(0, end === -1 ? undefined : end).toReversed()
}

/** What an event says beside what all events of this file have in common. */
function readStory({ api: { operation }, resources, unmapped }: AuditEvent) {
  const { chain_seq, previous_hash, app_id, app_name, actor_source, ...details } = unmapped
  return { operation, resources: resources.map(({ type, uid }) => `${type} ${uid}`), details }
}

type Story = { operation: string; resources: string[]; details: Record<string, string> }
type Scene = {
  appId: string
  releaseId: number
  patchId: number
  stableId: number
  betaId: number
}
type Step = {
  act: () => Promise<unknown>
  tells: (result: unknown) => Story
  /** What leaves no event after that; the same again, unless told. */
  ineffective?: () => Promise<unknown>
  /** The app's name when it happened; unless told, that of the scene. */
  appName?: string
}

async function createScene(): Promise<Scene> {
  const appId = await createTestApp(owner)
  const releaseId = await createTestRelease(owner.api, appId, version)
  const { id: patchId } = await owner.api.createPatch({ params: { appId }, body: { release_id: releaseId } })
  const { id: betaId } = await owner.api.createChannel({ params: { appId }, body: { channel: 'beta' } })
  return { appId, releaseId, patchId, betaId, stableId: await findChannelId(owner.api, appId) }
}

const readId = (result: unknown) => (result as { id: number }).id
const ofRelease = ({ appId, releaseId }: Scene) => [`release ${releaseId}`, `app ${appId}`]
const ofPatch = (scene: Scene) => [`patch ${scene.patchId}`, ...ofRelease(scene)]
const patchDetails = { patch_number: '1', release_version: version }

/** Every request below an app that leaves an event. The scene is made anew for each; its setup leaves its own events. */
const steps: Record<string, (scene: Scene) => Step | Promise<Step>> = {
  'creating an app': () => {
    const create = (organizationId: number) => () =>
      api.createApp({ body: { display_name: 'Atlas', organization_id: organizationId } })
    return {
      act: create(owner.organizationId),
      tells: (app) => ({ operation: 'app.create', resources: [`app ${readId(app)}`], details: {} }),
      ineffective: create(stranger.organizationId),
    }
  },
  'renaming an app': ({ appId }) => ({
    act: () => api.updateApp({ params: { appId }, body: { display_name: 'Borealis' } }),
    tells: () => ({
      operation: 'app.update',
      resources: [`app ${appId}`],
      details: { previous_name: 'Atlas', name: 'Borealis' },
    }),
    appName: 'Borealis',
  }),
  'deleting an app': ({ appId }) => ({
    act: () => api.deleteApp({ params: { appId } }),
    tells: () => ({ operation: 'app.delete', resources: [`app ${appId}`], details: {} }),
  }),
  'adding a collaborator': ({ appId }) => ({
    act: () => api.addCollaborator({ params: { appId }, body: { email: colleague.email.toUpperCase() } }),
    tells: () => ({
      operation: 'app_collaborator.add',
      resources: [`user ${colleague.userId}`, `app ${appId}`],
      details: { email: colleague.email, role: 'developer' },
    }),
  }),
  'changing the role of a collaborator': async ({ appId }) => {
    await owner.api.addCollaborator({ params: { appId }, body: { email: colleague.email } })
    const params = { appId, collaboratorId: colleague.userId }
    return {
      act: () => api.updateCollaborator({ params, body: { role: 'admin' } }),
      tells: () => ({
        operation: 'app_collaborator.role_update',
        resources: [`user ${colleague.userId}`, `app ${appId}`],
        details: { email: colleague.email, previous_role: 'developer', role: 'admin' },
      }),
    }
  },
  'removing a collaborator': async ({ appId }) => {
    await owner.api.addCollaborator({ params: { appId }, body: { email: colleague.email } })
    return {
      act: () => api.removeCollaborator({ params: { appId, collaboratorId: colleague.userId } }),
      tells: () => ({
        operation: 'app_collaborator.remove',
        resources: [`user ${colleague.userId}`, `app ${appId}`],
        details: { email: colleague.email, previous_role: 'developer' },
      }),
    }
  },
  'creating a channel': ({ appId }) => ({
    act: () => api.createChannel({ params: { appId }, body: { channel: 'canary' } }),
    tells: (channel) => ({
      operation: 'channel.create',
      resources: [`channel ${readId(channel)}`, `app ${appId}`],
      details: { channel: 'canary' },
    }),
  }),
  'deleting a channel': ({ appId, betaId }) => ({
    act: () => api.deleteChannel({ params: { appId, channelId: betaId } }),
    tells: () => ({
      operation: 'channel.delete',
      resources: [`channel ${betaId}`, `app ${appId}`],
      details: { channel: 'beta' },
    }),
  }),
  'creating a release': ({ appId }) => ({
    act: () => api.createRelease({ params: { appId }, body: { version: '2.0.0', flutter_revision: 'f00' } }),
    tells: (answer) => ({
      operation: 'release.create',
      resources: [`release ${(answer as { release: { id: number } }).release.id}`, `app ${appId}`],
      details: { release_version: '2.0.0' },
    }),
  }),
  'changing the status, the metadata and the notes of a release': async (scene) => {
    const params = { appId: scene.appId, releaseId: scene.releaseId }
    await owner.api.updateRelease({ params, body: { platform: 'ios', status: 'draft' } })
    const body = {
      platform: 'ios',
      status: 'active',
      metadata: { flavor: 'x', z: { b: 1, a: 2 } },
      notes: 'a',
    } as const
    return {
      act: () => api.updateRelease({ params, body }),
      tells: () => ({
        operation: 'release.update',
        resources: ofRelease(scene),
        details: {
          release_version: version,
          platform: 'ios',
          previous_status: 'draft',
          status: 'active',
          metadata: 'changed',
          notes: 'changed',
        },
      }),
    }
  },
  'changing only the notes of a release': (scene) => {
    const params = { appId: scene.appId, releaseId: scene.releaseId }
    return {
      act: () => api.updateRelease({ params, body: { notes: 'a' } }),
      tells: () => ({
        operation: 'release.update',
        resources: ofRelease(scene),
        details: { release_version: version, notes: 'changed' },
      }),
      ineffective: () => api.updateRelease({ params, body: { notes: null, platform: 'ios' } }),
    }
  },
  'deleting a release': (scene) => ({
    act: () => api.deleteRelease({ params: { appId: scene.appId, releaseId: scene.releaseId } }),
    tells: () => ({
      operation: 'release.delete',
      resources: ofRelease(scene),
      details: { release_version: version },
    }),
  }),
  'uploading a release artifact': async (scene) => {
    const { artifact, bytes } = await registerTestReleaseArtifact(api, scene, { arch: 'x64' })
    return {
      act: () => uploadAs(artifact.url, bytes),
      tells: () => ({
        operation: 'release_artifact.upload',
        resources: [`release_artifact ${artifact.id}`, ...ofRelease(scene)],
        details: { release_version: version, platform: 'android', arch: 'x64' },
      }),
    }
  },
  'replacing a release artifact': async (scene) => {
    const before = await uploadTestReleaseArtifact(owner.api, scene, { arch: 'x64' })
    const { artifact, bytes } = await registerTestReleaseArtifact(api, scene, { arch: 'x64' })
    return {
      act: () => uploadAs(artifact.url, bytes),
      tells: () => ({
        operation: 'release_artifact.replace',
        resources: [`release_artifact ${artifact.id}`, ...ofRelease(scene)],
        details: {
          release_version: version,
          platform: 'android',
          arch: 'x64',
          replaced_artifact_id: String(before.artifact.id),
        },
      }),
    }
  },
  'registering an empty release artifact': (scene) => ({
    act: async () => (await registerTestReleaseArtifact(api, scene, { bytes: Buffer.alloc(0), arch: 'dsym' })).artifact,
    tells: (artifact) => ({
      operation: 'release_artifact.upload',
      resources: [`release_artifact ${readId(artifact)}`, ...ofRelease(scene)],
      details: { release_version: version, platform: 'android', arch: 'dsym' },
    }),
  }),
  'listing release artifacts with links': async (scene) => {
    const { appId, releaseId } = scene
    const first = await uploadTestReleaseArtifact(owner.api, scene, { arch: 'x64' })
    const second = await uploadTestReleaseArtifact(owner.api, scene, { arch: 'arm' })
    await registerTestReleaseArtifact(owner.api, scene, { arch: 'never-uploaded' })
    const list = (platform: 'android' | 'ios') => () =>
      api.listReleaseArtifacts({ params: { appId, releaseId }, query: { platform } })
    return {
      act: list('android'),
      tells: () => ({
        operation: 'release_artifact.download',
        resources: [
          `release_artifact ${first.artifact.id}`,
          `release_artifact ${second.artifact.id}`,
          ...ofRelease(scene),
        ],
        details: { release_version: version, platform: 'android' },
      }),
      ineffective: list('ios'),
    }
  },
  'deleting the artifacts of a release': async (scene) => {
    const first = await uploadTestReleaseArtifact(owner.api, scene, { arch: 'x64' })
    const second = await uploadTestReleaseArtifact(owner.api, scene, { arch: 'arm' })
    const params = { appId: scene.appId, releaseId: scene.releaseId }
    return {
      act: () => api.deleteReleaseArtifacts({ params, query: { platform: 'android' } }),
      tells: () => ({
        operation: 'release_artifact.delete',
        resources: [
          `release_artifact ${first.artifact.id}`,
          `release_artifact ${second.artifact.id}`,
          ...ofRelease(scene),
        ],
        details: { release_version: version, platform: 'android' },
      }),
    }
  },
  'creating a patch': (scene) => ({
    act: () =>
      api.createPatch({
        params: { appId: scene.appId },
        body: { release_id: scene.releaseId, client_patch_id: 'run-1' },
      }),
    tells: (patch) => ({
      operation: 'patch.create',
      resources: [`patch ${readId(patch)}`, ...ofRelease(scene)],
      details: { patch_number: '2', release_version: version },
    }),
  }),
  'changing the notes of a patch': (scene) => ({
    act: () => api.updatePatch({ params: scene, body: { notes: 'fixes the map' } }),
    tells: () => ({ operation: 'patch.notes_update', resources: ofPatch(scene), details: patchDetails }),
  }),
  'uploading a patch artifact': async (scene) => {
    const bytes = randomBytes(500)
    const body = { platform: 'android', arch: 'aarch64', hash: sha256(bytes), size: bytes.length } as const
    const { id, url } = await api.createPatchArtifact({ params: scene, body })
    return {
      act: () => uploadAs(url, bytes),
      tells: () => ({
        operation: 'patch_artifact.upload',
        resources: [`patch_artifact ${id}`, ...ofPatch(scene)],
        details: { ...patchDetails, platform: 'android', arch: 'aarch64' },
      }),
    }
  },
  'promoting a patch to stable': async (scene) => {
    const promote = (client: Client, channelId: number) =>
      client.promotePatch({
        params: { appId: scene.appId },
        body: { patch_id: scene.patchId, channel_id: channelId },
      })
    await promote(owner.api, scene.betaId)
    return {
      act: () => promote(api, scene.stableId),
      tells: () => ({
        operation: 'patch.promote',
        resources: ofPatch(scene),
        details: { ...patchDetails, channel: 'stable', previous_channel: 'beta' },
      }),
    }
  },
  'putting a patch on another channel': (scene) => ({
    act: () =>
      api.promotePatch({
        params: { appId: scene.appId },
        body: { patch_id: scene.patchId, channel_id: scene.betaId },
      }),
    tells: () => ({
      operation: 'patch.channel_update',
      resources: ofPatch(scene),
      details: { ...patchDetails, channel: 'beta' },
    }),
  }),
  'rolling back a patch': (scene) => ({
    act: () => api.rollBackPatch({ params: scene }),
    tells: () => ({ operation: 'patch.rollback', resources: ofPatch(scene), details: patchDetails }),
  }),
  'rolling forward a patch': async (scene) => {
    await owner.api.rollBackPatch({ params: scene })
    return {
      act: () => api.rollForwardPatch({ params: scene }),
      tells: () => ({ operation: 'patch.rollforward', resources: ofPatch(scene), details: patchDetails }),
    }
  },
}

async function uploadAs(url: string, bytes: Buffer): Promise<void> {
  const response = await fetch(url, { method: 'POST', body: new Uint8Array(bytes), headers: requestHeaders })
  if (response.status !== 200) throw new Error(`the upload answered ${response.status}`)
}

describe.each(Object.entries(steps))('%s', (_name, prepare) => {
  it('records one event that says what, who, by what and from where', async () => {
    const scene = await createScene()
    const { act, tells, appName = 'Atlas' } = await prepare(scene)
    let result: unknown
    const events = await watch(async () => {
      result = await act()
    })
    expect(events.map(readStory)).toEqual([tells(result)])
    const { actor, api: call, unmapped, ...event } = events[0] as AuditEvent
    expect(actor).toEqual({
      user: { uid: String(owner.userId), name: owner.email, email_addr: owner.email, type_id: 1 },
    })
    expect(call.token).toEqual({ uid: expect.stringMatching(/^\d+$/), name: 'test' })
    expect(unmapped).toMatchObject({ app_id: tells(result).resources.at(-1)?.slice('app '.length), app_name: appName })
    expect(unmapped.actor_source).toBe('api_key')
    expect(event).toMatchObject({
      src_endpoint: { ip: '127.0.0.1' },
      http_request: { user_agent: requestHeaders['user-agent'] },
      metadata: { correlation_uid: requestHeaders['x-request-id'], tenant_uid: String(owner.organizationId) },
    })
  })

  it('records nothing when it is repeated without effect or refused', async () => {
    const { act, ineffective = act } = await prepare(await createScene())
    await act()
    expect(await watch(() => ineffective().catch(() => undefined))).toEqual([])
  })

  it('changes nothing when its event cannot be recorded, and is done when it can again', async () => {
    const { act, tells } = await prepare(await createScene())
    const before = await readAppTables(service.deps.db)
    const events = await watch(async () => {
      await breakAuditLog(service.deps.db)
      try {
        await expect(act()).rejects.toThrow()
      } finally {
        await repairAuditLog(service.deps.db)
      }
    })
    expect(events).toEqual([])
    expect(await readAppTables(service.deps.db)).toEqual(before)
    let result: unknown
    const afterRepair = await watch(async () => {
      result = await act()
    })
    expect(afterRepair.map(readStory)).toEqual([tells(result)])
  })
})

const reads = ['listing release artifacts with links']

describe.each(Object.entries(steps).filter(([name]) => !reads.includes(name)))('%s', (_name, prepare) => {
  it('records nothing when its change fails as late as in the commit', async () => {
    const { act } = await prepare(await createScene())
    const events = await watch(async () => {
      await breakCommits(service.deps.db)
      try {
        await expect(act()).rejects.toThrow()
      } finally {
        await repairCommits(service.deps.db)
      }
    })
    expect(events).toEqual([])
  })
})

describe('a request that is refused', () => {
  it('records nothing, whatever it asked for', async () => {
    const scene = await createScene()
    const [params, missing] = [scene, { ...scene, releaseId: 999_999, patchId: 999_999, channelId: 999_999 }]
    const promotion = (patch_id: number, channel_id: number) => ({ params, body: { patch_id, channel_id } })
    const release = { version, flutter_revision: 'f00' }
    const refusals = [
      () => stranger.api.updateApp({ params, body: { display_name: 'Mine' } }),
      () => stranger.api.deleteApp({ params }),
      () => stranger.api.createChannel({ params, body: { channel: 'canary' } }),
      () => stranger.api.listReleaseArtifacts({ params, query: {} }),
      () => api.addCollaborator({ params, body: { email: 'nobody@example.com' } }),
      () => api.updateCollaborator({ params: { ...scene, collaboratorId: 999_999 }, body: { role: 'admin' } }),
      () => api.deleteChannel({ params: { ...scene, channelId: scene.stableId } }),
      () => api.createRelease({ params, body: release }),
      () => api.updateRelease({ params: missing, body: { notes: 'x' } }),
      () => api.deleteRelease({ params: missing }),
      () => api.listReleaseArtifacts({ params: missing, query: {} }),
      () => api.deleteReleaseArtifacts({ params: missing, query: {} }),
      () => api.createPatch({ params, body: { release_id: missing.releaseId } }),
      () => api.updatePatch({ params: missing, body: { notes: 'x' } }),
      () => api.promotePatch(promotion(missing.patchId, scene.stableId)),
      () => api.promotePatch(promotion(scene.patchId, missing.channelId)),
      () => api.rollBackPatch({ params: missing }),
    ]
    const before = await readAppTables(service.deps.db)
    const events = await watch(async () => {
      for (const refusal of refusals) await expect(refusal(), refusal.toString()).rejects.toThrow()
    })
    expect(events).toEqual([])
    expect(await readAppTables(service.deps.db)).toEqual(before)
  })

  it('records nothing for bytes that are not those that were registered, or came too late', async () => {
    const scene = await createScene()
    const wrong = await registerTestReleaseArtifact(api, scene, { arch: 'x64' })
    const late = await registerTestReleaseArtifact(api, scene, { arch: 'x64' })
    const first = await registerTestReleaseArtifact(api, scene, { arch: 'x64' })
    await uploadAs(first.artifact.url, first.bytes)
    await owner.api.updateRelease({ params: scene, body: { platform: 'android', status: 'active' } })
    const events = await watch(async () => {
      await expect(uploadAs(wrong.artifact.url, randomBytes(1000))).rejects.toThrow('400')
      await expect(uploadAs(late.artifact.url, late.bytes)).rejects.toThrow('409')
    })
    expect(events).toEqual([])
  })
})

describe('an upload', () => {
  it('is recorded once when two requests complete it at the same time', async () => {
    const { deps } = service
    const scene = await createScene()
    const { artifact, bytes } = await registerTestReleaseArtifact(api, scene)
    const patch = await api.createPatchArtifact({
      params: scene,
      body: { platform: 'android', arch: 'aarch64', hash: sha256(bytes), size: bytes.length },
    })
    const from = { address: undefined, userAgent: undefined, correlationId: undefined }
    for (const url of [artifact.url, patch.url]) {
      const key = new URL(url).pathname.split('/').at(-1) ?? ''
      await deps.blobs.write(key, { offset: 0, parts: [], source: Readable.from([bytes]) })
      await deps.blobs.finish(key, { sizeBytes: bytes.length, sha256: sha256(bytes), parts: [] })
      const events = await watch(async () => {
        let finishing: Promise<unknown> = Promise.resolve()
        await deps.db.transaction().execute(async (trx) => {
          await trx.selectFrom('apps').select('id').where('id', '=', scene.appId).forUpdate().execute()
          await trx.selectFrom('releases').select('id').where('id', '=', scene.releaseId).forUpdate().execute()
          finishing = Promise.all([finishUpload(deps, key, from), finishUpload(deps, key, from)])
          await vi.waitFor(async () => {
            const { rows } = await sql`
              select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
            `.execute(deps.db)
            expect(rows).toHaveLength(2)
          })
        })
        await finishing
      })
      expect(events).toHaveLength(1)
    }
  })

  it('is that of whoever registered it, from where the bytes came', async () => {
    const scene = await createScene()
    await owner.api.addCollaborator({ params: scene, body: { email: colleague.email } })
    const { artifact, bytes } = await registerTestReleaseArtifact(colleague.api, scene)
    const [event] = await watch(() => uploadAs(artifact.url, bytes))
    expect(event?.actor.user).toMatchObject({ uid: String(colleague.userId), email_addr: colleague.email })
    expect(event?.http_request?.user_agent).toBe(requestHeaders['user-agent'])
    const params = { organizationId: owner.organizationId }
    const found = await owner.api.listAuditLogs({ params, query: { actorId: String(colleague.userId) } })
    expect(found.data[0]?.metadata.uid).toBe(event?.metadata.uid)
  })

  it('is by nobody known when it was registered before that was kept', async () => {
    const { artifact, bytes } = await registerTestReleaseArtifact(api, await createScene())
    const { db } = service.deps
    await db.updateTable('release_artifacts').set({ registered_by: null }).where('id', '=', artifact.id).execute()
    const [event] = await watch(() => uploadAs(artifact.url, bytes))
    expect(event?.actor).toEqual({ user: { name: 'unknown', type_id: 0 } })
    expect(event?.unmapped.actor_source).toBe('none')
    expect(event?.api).toEqual({ operation: 'release_artifact.upload' })
  })
})

describe('moving an app', () => {
  const move = (appId: string, organizationId: number) =>
    api.transferApp({ params: { organizationId }, body: { app_id: appId } })

  it('is recorded in both organizations, and never again for an app that is there already', async () => {
    const { appId } = await createScene()
    const story = {
      operation: 'app.transfer',
      resources: [`app ${appId}`],
      details: { previous_organization_id: String(owner.organizationId), organization_id: String(teamId) },
    }
    expect((await watch(() => move(appId, teamId))).map(readStory)).toEqual([story])
    const inTeam = async () => (await listEvents(teamId)).filter(({ unmapped }) => unmapped.app_id === appId)
    expect((await inTeam()).map(readStory)).toEqual([story])
    expect((await inTeam())[0]?.unmapped.app_name).toBe('Atlas')
    expect(await watch(() => move(appId, teamId))).toEqual([])
    expect(await inTeam()).toHaveLength(1)
  })

  it('is not done when its events cannot be recorded', async () => {
    const { appId } = await createScene()
    const before = await readAppTables(service.deps.db)
    await breakAuditLog(service.deps.db)
    try {
      await expect(move(appId, teamId)).rejects.toMatchObject({ status: 500 })
    } finally {
      await repairAuditLog(service.deps.db)
    }
    expect(await readAppTables(service.deps.db)).toEqual(before)
  })

  it('tells what follows to the organization that has the app then', async () => {
    const { appId } = await createScene()
    await move(appId, teamId)
    const rename = () => api.updateApp({ params: { appId }, body: { display_name: 'Borealis' } })
    expect(await watch(rename)).toEqual([])
    expect((await listEvents(teamId))[0]?.api.operation).toBe('app.update')
  })
})
