import { randomBytes } from 'node:crypto'
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import type { Deps } from '../../src/deps.ts'
import { removeOrganization, resumeRemovals } from '../../src/organizations/remove-organization.ts'
import { sweepBlobs } from '../../src/transfers/sweep-blobs.ts'
import { createTestApp } from '../support/publishing.ts'
import { createTestService, type TestService } from '../support/test-service.ts'
import { createPublisher, findReceivedBytes, listBlobFiles } from '../transfers/artifacts.ts'
import { open, send } from '../transfers/http.ts'
import { createMember, createServiceAccountClient, createTeam, settle, type Team, untilSomebodyWaits } from './teams.ts'

const bytes = randomBytes(1000)

let service: TestService

beforeAll(async () => {
  service = await createTestService()
})
afterAll(() => service.stop())

async function hasOrganization(organizationId: number): Promise<boolean> {
  const rows = await service.deps.db.selectFrom('organizations').select('id').where('id', '=', organizationId).execute()
  return rows.length > 0
}

async function countApps(organizationId: number): Promise<number> {
  const rows = await service.deps.db
    .selectFrom('apps')
    .select('id')
    .where('organization_id', '=', organizationId)
    .execute()
  return rows.length
}

const createPublisherOf = ({ owner, organizationId }: Team) => createPublisher({ ...owner, organizationId })

describe('DELETE /api/v1/organizations/{organizationId}', () => {
  it('hides the organization and all that is below it from everybody, at once', async () => {
    const team = await createTeam(service)
    const params = { organizationId: team.organizationId }
    const appId = await createTestApp({ ...team.owner, ...params })
    const member = await createMember(service, team, 'admin')
    const machine = await createServiceAccountClient(service, team, 'admin')
    const collaborator = await service.createAccount()
    await team.owner.api.addCollaborator({ params: { appId }, body: { email: collaborator.email } })
    const invited = await service.createAccount()
    const { id: invitationId } = await team.owner.api.createInvitation({
      params,
      body: { email: invited.email, role: 'viewer' },
    })

    await team.owner.api.deleteOrganization({ params })
    for (const { api } of [team.owner, member, machine, collaborator]) {
      const { organizations } = await api.listOrganizations()
      expect(organizations.map(({ organization }) => organization.id)).not.toContain(team.organizationId)
      expect((await api.listApps()).apps).toEqual([])
      await expect(api.getOrganization({ params })).rejects.toMatchObject({ status: 404 })
      await expect(api.getApp({ params: { appId } })).rejects.toMatchObject({ status: 404 })
      await expect(api.deleteOrganization({ params })).rejects.toMatchObject({ status: 404 })
    }
    expect(await invited.api.listReceivedInvitations()).toEqual({ invitations: [] })
    await expect(invited.api.acceptInvitation({ params: { invitationId } })).rejects.toMatchObject({ status: 404 })
    await expect(
      team.owner.api.transferApp({ params: { organizationId: team.owner.organizationId }, body: { app_id: appId } }),
    ).rejects.toMatchObject({ status: 404 })
  })

  it('is only for the owner, and not for a personal organization', async () => {
    const team = await createTeam(service)
    const params = { organizationId: team.organizationId }
    const admin = await createMember(service, team, 'admin')
    const machine = await createServiceAccountClient(service, team, 'admin')
    const stranger = await service.createAccount()
    await expect(admin.api.deleteOrganization({ params })).rejects.toMatchObject({ status: 403 })
    await expect(machine.api.deleteOrganization({ params })).rejects.toMatchObject({ status: 403 })
    await expect(stranger.api.deleteOrganization({ params })).rejects.toMatchObject({ status: 404 })
    await expect(
      stranger.api.deleteOrganization({ params: { organizationId: stranger.organizationId } }),
    ).rejects.toMatchObject({ status: 409, code: 'organization_is_personal' })
  })

  it('is done once when asked twice at once', async () => {
    const { owner, organizationId } = await createTeam(service)
    const params = { organizationId }
    const answers = await settle([owner.api.deleteOrganization({ params }), owner.api.deleteOrganization({ params })])
    expect(answers.toSorted()).toEqual([404, 'done'])
  })
})

describe('the removal of a deleted organization', () => {
  const failOnce = (deps: Deps): Deps => {
    let calls = 0
    const requestEventRemoval: Deps['jobs']['requestEventRemoval'] = async (...input) => {
      calls += 1
      if (calls === 2) throw new Error('the database went away')
      await deps.jobs.requestEventRemoval(...input)
    }
    return { ...deps, jobs: { ...deps.jobs, requestEventRemoval } }
  }

  it('leaves nothing behind, also after it failed in the middle', async () => {
    const team = await createTeam(service)
    const { organizationId, owner } = team
    const publishers = [await createPublisherOf(team), await createPublisherOf(team), await createPublisherOf(team)]
    const uploads = await Promise.all(publishers.map((publisher) => publisher.registerRelease(bytes)))
    for (const { url } of uploads) await send('POST', url, { body: bytes })
    await createServiceAccountClient(service, team, 'developer')
    await owner.api.deleteOrganization({ params: { organizationId } })

    await expect(removeOrganization(failOnce(service.deps), { organizationId })).rejects.toThrow('went away')
    expect(await countApps(organizationId)).toBe(2)
    expect(await hasOrganization(organizationId)).toBe(true)
    await Promise.all([
      removeOrganization(service.deps, { organizationId }),
      removeOrganization(service.deps, { organizationId }),
    ])
    expect(await countApps(organizationId)).toBe(0)
    expect(await hasOrganization(organizationId)).toBe(false)
    await removeOrganization(service.deps, { organizationId })

    await sweepBlobs(service.deps)
    for (const { key } of uploads) expect(await listBlobFiles(service, key)).toEqual([])
  })

  it('touches no organization that is not being deleted', async () => {
    const team = await createTeam(service)
    await createPublisherOf(team)
    await removeOrganization(service.deps, { organizationId: team.organizationId })
    await resumeRemovals(service.deps)
    expect(await countApps(team.organizationId)).toBe(1)
    expect(await hasOrganization(team.organizationId)).toBe(true)
  })

  it('is part of the transaction: one that is rolled back requests nothing', async () => {
    const { organizationId } = await createTeam(service)
    const rolledBack = service.deps.db.transaction().execute(async (trx) => {
      await service.deps.jobs.requestOrganizationRemoval(trx, { organizationId })
      throw new Error('rolled back')
    })
    await expect(rolledBack).rejects.toThrow('rolled back')
    const { rows } = await sql`
      select id from pgboss.job where name = 'delete-organization'
      and (data->>'organizationId')::bigint = ${organizationId}`.execute(service.deps.db)
    expect(rows).toEqual([])
  })
})

describe('while an organization is deleted', () => {
  it('an app is created before, and goes with it, or not at all', async () => {
    const owner = await service.createAccount()
    for (let round = 0; round < 20; round += 1) {
      const { organizationId } = await createTeam(service, owner)
      const create = () => createTestApp({ ...owner, organizationId })
      const [deleted, ...created] = await settle([
        owner.api.deleteOrganization({ params: { organizationId } }),
        create(),
        create(),
        create(),
      ])
      expect(deleted).toBe('done')
      expect(new Set([404, 'done', ...created])).toEqual(new Set([404, 'done']))
      expect(await countApps(organizationId)).toBe(created.filter((answer) => answer === 'done').length)
      await removeOrganization(service.deps, { organizationId })
      expect(await hasOrganization(organizationId)).toBe(false)
    }
  })

  it('an app whose creation was let in before is refused after', async () => {
    const { owner, organizationId } = await createTeam(service)
    const { request } = await service.deps.db.transaction().execute(async (trx) => {
      await trx.selectFrom('organizations').select('id').where('id', '=', organizationId).forUpdate().execute()
      const request = settle([createTestApp({ ...owner, organizationId })])
      await untilSomebodyWaits(service)
      const deletion = { deletion_started_at: new Date() }
      await trx.updateTable('organizations').set(deletion).where('id', '=', organizationId).execute()
      return { request }
    })
    expect(await request).toEqual([404])
    expect(await countApps(organizationId)).toBe(0)
  })

  it('an invitation to it is accepted before, or answers 404', async () => {
    const owner = await service.createAccount()
    const guest = await service.createAccount()
    for (let round = 0; round < 20; round += 1) {
      const { organizationId } = await createTeam(service, owner)
      const params = { organizationId }
      const body = { email: guest.email, role: 'viewer' as const }
      const { id: invitationId } = await owner.api.createInvitation({ params, body })
      const [deleted, accepted] = await settle([
        owner.api.deleteOrganization({ params }),
        guest.api.acceptInvitation({ params: { invitationId } }),
      ])
      expect(deleted).toBe('done')
      expect(['done', 404]).toContain(accepted)
    }
  })

  it('an upload that is in the middle ends in a 404, and leaves no bytes', async () => {
    const team = await createTeam(service)
    const { organizationId, owner } = team
    const publisher = await createPublisherOf(team)
    const { url, key } = await publisher.registerRelease(bytes)
    const { request, answer } = open('PUT', url, { 'content-length': 1000 })
    request.write(bytes.subarray(0, 500))
    await vi.waitFor(async () => expect(await listBlobFiles(service, key)).not.toEqual([]), { interval: 5 })
    await owner.api.deleteOrganization({ params: { organizationId } })
    await removeOrganization(service.deps, { organizationId })
    request.end(bytes.subarray(500))
    expect(await answer).toMatchObject({ status: 404, code: 'not_found' })
    await sweepBlobs(service.deps)
    expect(await listBlobFiles(service, key)).toEqual([])
    expect(await findReceivedBytes(service, key)).toBeUndefined()
  })

  it('uploads at any moment end in 200 or 404, and leave no bytes', async () => {
    const owner = await service.createAccount()
    for (let round = 0; round < 20; round += 1) {
      const team = await createTeam(service, owner)
      const { organizationId } = team
      const publisher = await createPublisherOf(team)
      const uploads = [
        await publisher.registerRelease(bytes),
        await publisher.registerRelease(bytes),
        await publisher.registerPatch(bytes),
      ]
      const removal = async () => {
        await owner.api.deleteOrganization({ params: { organizationId } })
        await removeOrganization(service.deps, { organizationId })
      }
      const sent = uploads.map(({ url }) => send('POST', url, { body: bytes }))
      const [answers] = await Promise.all([Promise.all(sent), removal()])
      expect(new Set([200, 404, ...answers.map(({ status }) => status)])).toEqual(new Set([200, 404]))
      expect(await hasOrganization(organizationId)).toBe(false)
      await sweepBlobs(service.deps)
      for (const { key } of uploads) {
        expect(await findReceivedBytes(service, key)).toBeUndefined()
        expect(await listBlobFiles(service, key)).toEqual([])
      }
    }
  })
})

describe('the job queue', () => {
  it('removes what was requested, and at its start what was begun before and lost, whatever else fails', async () => {
    const broken = await createTeam(service)
    await broken.owner.api.deleteOrganization({ params: { organizationId: broken.organizationId } })
    const requested = await createTeam(service)
    const lost = await createTeam(service)
    for (const team of [lost, requested]) {
      await createPublisherOf(team)
      await team.owner.api.deleteOrganization({ params: { organizationId: team.organizationId } })
      if (team === lost) await sql`delete from pgboss.job where name = 'delete-organization'`.execute(service.deps.db)
    }
    const nothing = async () => undefined
    await service.deps.jobs.work({
      sweepBlobs: nothing,
      removeDeviceEvents: nothing,
      removeOrganization: async (input) => {
        if (input.organizationId === broken.organizationId) throw new Error('cannot be removed')
        await removeOrganization(service.deps, input)
      },
      resumeRemovals: () => resumeRemovals(service.deps),
      sendMail: nothing,
      analyzeRelease: nothing,
      requestMissingAnalyses: nothing,
      maintain: async () => undefined,
    })
    const check = async () => {
      expect(await hasOrganization(requested.organizationId)).toBe(false)
      expect(await hasOrganization(lost.organizationId)).toBe(false)
    }
    await vi.waitFor(check, { timeout: 20_000, interval: 100 })
    expect(await hasOrganization(broken.organizationId)).toBe(true)
    const { rows } = await sql<{ state: string }>`
      select state from pgboss.job where name = 'delete-organization'
      and (data->>'organizationId')::bigint = ${broken.organizationId}`.execute(service.deps.db)
    expect(rows.map(({ state }) => state)).not.toContain('completed')
  })
})
