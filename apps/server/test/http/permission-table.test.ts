import {
  type AppCollaboratorRole,
  type InvitedRole,
  type OperationId,
  operationIds,
  type Route,
  routes,
  type ServiceAccountRole,
} from '@godwit/contract'
import Fastify, { type FastifyInstance } from 'fastify'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createApiKey } from '../../src/api-keys/actions.ts'
import { AppError } from '../../src/errors.ts'
import { bindRoute } from '../../src/http/bind.ts'
import { parseAnyContentType } from '../../src/http/bodies.ts'
import { handleErrors } from '../../src/http/error-handler.ts'
import { insertMember, insertOrganization } from '../../src/organizations/queries.ts'
import { startClientSession } from '../../src/sessions/actions.ts'
import { createTestApp, createTestRelease } from '../support/publishing.ts'
import { createTestService, type TestAccount, type TestService } from '../support/test-service.ts'
import { validBodies } from '../support/valid-bodies.ts'

/** The table of roles, as a person wrote it down: one mark for each column, + allowed, . not. */
const columns = ['owner', 'admin', 'appManager', 'developer', 'viewer', 'collabAdmin', 'collabDeveloper', 'R'] as const
const table = {
  'organization.read, members.read': '+++++..+',
  'organization.update': '++......',
  'organization.delete, organization.transfer_ownership': '+.......',
  'members.manage': '++......',
  'service_accounts.manage': '++......',
  'audit.read': '++......',
  'app.create': '+++.....',
  'app.read, metrics.read': '++++++++',
  'app.update': '+++..+..',
  'app.delete': '++...+..',
  'app.transfer': '++......',
  'collaborators.manage': '+++..+..',
  'channel.create': '++++.+++',
  'channel.delete': '+++..+..',
  'release.write': '++++.+++',
  'release.delete': '+++..+..',
  'patch.write': '++++.+++',
}
type Row = keyof typeof table
type Column = (typeof columns)[number]

/** Which row each operation stands on. The others need no role: the own account, what anybody signed in may do, and what is open. */
const rows: Record<OperationId, Row | 'own account' | 'anybody signed in' | 'open'> = {
  createUser: 'own account',
  getCurrentUser: 'own account',
  updateCurrentUser: 'own account',
  deleteCurrentUser: 'own account',
  listApiKeys: 'own account',
  createApiKey: 'own account',
  revokeApiKey: 'own account',
  getPlan: 'own account',
  listReceivedInvitations: 'own account',
  acceptInvitation: 'own account',
  declineInvitation: 'own account',
  listOrganizations: 'organization.read, members.read',
  createOrganization: 'own account',
  getOrganization: 'organization.read, members.read',
  updateOrganization: 'organization.update',
  deleteOrganization: 'organization.delete, organization.transfer_ownership',
  transferOwnership: 'organization.delete, organization.transfer_ownership',
  listOrganizationApps: 'app.read, metrics.read',
  transferApp: 'app.transfer',
  listOrganizationUsers: 'organization.read, members.read',
  addOrganizationUser: 'members.manage',
  updateOrganizationUser: 'members.manage',
  removeOrganizationUser: 'members.manage',
  listInvitations: 'members.manage',
  createInvitation: 'members.manage',
  revokeInvitation: 'members.manage',
  getOrganizationPlan: 'organization.read, members.read',
  getOrganizationUsage: 'organization.read, members.read',
  listAuditLogs: 'audit.read',
  listServiceAccounts: 'service_accounts.manage',
  createServiceAccount: 'service_accounts.manage',
  updateServiceAccount: 'service_accounts.manage',
  deleteServiceAccount: 'service_accounts.manage',
  listServiceAccountKeys: 'service_accounts.manage',
  createServiceAccountKey: 'service_accounts.manage',
  revokeServiceAccountKey: 'service_accounts.manage',
  listTrustRules: 'service_accounts.manage',
  createTrustRule: 'service_accounts.manage',
  deleteTrustRule: 'service_accounts.manage',
  listApps: 'app.read, metrics.read',
  createApp: 'app.create',
  getApp: 'app.read, metrics.read',
  getAppIcon: 'app.read, metrics.read',
  updateApp: 'app.update',
  deleteApp: 'app.delete',
  listCollaborators: 'app.read, metrics.read',
  addCollaborator: 'collaborators.manage',
  updateCollaborator: 'collaborators.manage',
  removeCollaborator: 'collaborators.manage',
  listChannels: 'app.read, metrics.read',
  createChannel: 'channel.create',
  deleteChannel: 'channel.delete',
  listReleases: 'app.read, metrics.read',
  createRelease: 'release.write',
  getRelease: 'app.read, metrics.read',
  updateRelease: 'release.write',
  deleteRelease: 'release.delete',
  listReleaseArtifacts: 'app.read, metrics.read',
  createReleaseArtifact: 'release.write',
  deleteReleaseArtifacts: 'release.write',
  listReleasePatches: 'app.read, metrics.read',
  createPatch: 'patch.write',
  updatePatch: 'patch.write',
  createPatchArtifact: 'patch.write',
  promotePatch: 'patch.write',
  rollBackPatch: 'patch.write',
  rollForwardPatch: 'patch.write',
  checkPatch: 'open',
  createPatchEvent: 'open',
  getVersionDistribution: 'app.read, metrics.read',
  getPatchAdoption: 'app.read, metrics.read',
  getUniqueUsers: 'app.read, metrics.read',
  getNewDevices: 'app.read, metrics.read',
  getActiveHours: 'app.read, metrics.read',
  getActivityHeatmap: 'app.read, metrics.read',
  getPatchInstalls: 'app.read, metrics.read',
  getPatchDownloads: 'app.read, metrics.read',
  getReleasePatchInstalls: 'app.read, metrics.read',
  getReleasePatchDownloads: 'app.read, metrics.read',
  importActivity: 'app.update',
  deleteDevice: 'app.update',
  getCloudUpload: 'anybody signed in',
  getGcpUpload: 'anybody signed in',
  getCloudDownload: 'anybody signed in',
  getGcpDownload: 'anybody signed in',
  uploadByPost: 'open',
  uploadByPut: 'open',
  download: 'open',
  uploadSpeedTest: 'open',
  downloadSpeedTest: 'open',
  getHealth: 'open',
  getPrometheusMetrics: 'open',
  getReadiness: 'open',
  getOpenApi: 'open',
  getApiCatalog: 'open',
}

type Caller = {
  name: string
  token: string
  kind: 'person' | 'restricted key' | 'service account'
  /** Its column of the table; undefined: the caller has no role here. */
  column: Column | 'auditor' | undefined
}
type Outcome = 'let through' | 'forbidden' | 'hidden'

/** Said by every handler here instead of doing anything: whoever reads it was let through. */
const letThrough = new AppError('upgrade_required')

let service: TestService
let door: FastifyInstance
let callers: Caller[]
let parameters: Record<string, string | number>

beforeAll(async () => {
  service = await createTestService()
  const owner = await service.createAccount()
  const { id: organizationId } = await insertOrganization(service.deps.db, { name: 'Acme', organizationType: 'team' })
  await insertMember(service.deps.db, { organizationId, userId: owner.userId, role: 'owner' })
  const appId = await createTestApp({ ...owner, organizationId })
  const releaseId = await createTestRelease(owner.api, appId)
  callers = await createCallers(owner, organizationId, appId)
  parameters = { organizationId, appId, releaseId }
  door = await openDoor()
})

afterAll(async () => {
  await door.close()
  await service.stop()
})

/** Every operation of the contract, bound as the service binds it, with its credentials and rights, but without its deeds. */
async function openDoor(): Promise<FastifyInstance> {
  const app = Fastify()
  handleErrors(app)
  parseAnyContentType(app)
  for (const id of operationIds) {
    bindRoute(app, service.deps, id, async () => {
      throw letThrough
    })
  }
  await app.ready()
  return app
}

async function createCallers(owner: TestAccount, organizationId: number, appId: string): Promise<Caller[]> {
  const { db } = service.deps
  const keyOf = async (
    holder: { userId: number } | { serviceAccountId: number },
    permission: 'full' | 'release_and_patch',
  ) => (await createApiKey(db, { holder, name: 'key', permission, expiresAt: null })).key
  const person = (name: string, account: TestAccount, column: Column | undefined): Caller => ({
    name,
    token: account.apiKey,
    kind: 'person',
    column,
  })
  const list: Caller[] = [
    person('the owner', owner, 'owner'),
    { name: "the owner's key R", token: await keyOf(owner, 'release_and_patch'), kind: 'restricted key', column: 'R' },
    { name: 'the owner, signed in', token: await signIn(owner), kind: 'person', column: 'owner' },
    person('a stranger', await service.createAccount(), undefined),
  ]
  for (const role of ['admin', 'appManager', 'developer', 'viewer'] satisfies InvitedRole[]) {
    const member = await service.createAccount()
    await insertMember(db, { organizationId, userId: member.userId, role })
    list.push(person(`a member who is ${role}`, member, role))
  }
  for (const role of ['admin', 'developer'] satisfies AppCollaboratorRole[]) {
    const collaborator = await service.createAccount()
    await db.insertInto('app_collaborators').values({ app_id: appId, user_id: collaborator.userId, role }).execute()
    list.push(
      person(`a collaborator who is ${role}`, collaborator, role === 'admin' ? 'collabAdmin' : 'collabDeveloper'),
    )
  }
  const serviceAccount = async (inOrganization: number, role: ServiceAccountRole) => {
    const { id } = await db
      .insertInto('service_accounts')
      .values({ organization_id: inOrganization, name: role, role })
      .returning('id')
      .executeTakeFirstOrThrow()
    return await keyOf({ serviceAccountId: id }, 'full')
  }
  for (const role of ['admin', 'appManager', 'developer', 'viewer', 'auditor'] satisfies ServiceAccountRole[]) {
    const token = await serviceAccount(organizationId, role)
    list.push({ name: `a service account that is ${role}`, token, kind: 'service account', column: role })
  }
  const foreign = await serviceAccount(owner.organizationId, 'admin')
  list.push({
    name: 'a service account of another organization',
    token: foreign,
    kind: 'service account',
    column: undefined,
  })
  return list
}

async function signIn(account: TestAccount): Promise<string> {
  const signedIn = { userId: account.userId, issuer: service.baseUrl, isMfa: null, userAgent: null, address: null }
  const now = service.deps.clock()
  const session = await startClientSession(service.deps.db, { ...signedIn, client: 'test', now, lifetimeMs: 60_000 })
  return (await service.deps.accessTokens.sign({ sub: String(account.userId), sid: session.id })).token
}

/** What the table says, and nothing of how the service decides. */
function expectOutcome(caller: Caller, id: OperationId): Outcome {
  const row = rows[id]
  if (row === 'open') return 'let through'
  if (row === 'own account') return caller.kind === 'person' ? 'let through' : 'forbidden'
  if (row === 'anybody signed in') return caller.column === 'auditor' ? 'forbidden' : 'let through'
  // The own lists: whoever may read anything gets one, and finds in it what it may see.
  if (id === 'listOrganizations' || id === 'listApps') return caller.column === 'auditor' ? 'forbidden' : 'let through'
  if (caller.column === undefined) return 'hidden'
  if (caller.column === 'auditor') return row === 'audit.read' ? 'let through' : 'forbidden'
  return table[row][columns.indexOf(caller.column)] === '+' ? 'let through' : 'forbidden'
}

async function observeOutcome(caller: Caller, id: OperationId): Promise<string> {
  const route: Route = routes[id]
  const url = route.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => String(parameters[name] ?? 1))
  const body =
    id === 'createApp' ? { display_name: 'Atlas', organization_id: parameters.organizationId } : validBodies[id]
  const answer = await door.inject({
    method: route.method,
    url,
    headers: { authorization: `Bearer ${caller.token}` },
    ...(body === undefined ? {} : { payload: JSON.stringify(body) }),
  })
  const names: Record<string, Outcome> = { 426: 'let through', 403: 'forbidden', 404: 'hidden' }
  return names[answer.statusCode] ?? `${answer.statusCode} ${answer.body}`
}

describe('the permission table', () => {
  it('has its row for every operation', () => {
    expect(Object.keys(rows).toSorted()).toEqual(operationIds.toSorted())
  })

  it.each(operationIds.filter((id) => routes[id].access.by !== 'signature'))(
    'decides %s for every kind of caller',
    async (id) => {
      const expected = Object.fromEntries(callers.map((caller) => [caller.name, expectOutcome(caller, id)]))
      const observed: Record<string, string> = {}
      for (const caller of callers) observed[caller.name] = await observeOutcome(caller, id)
      expect(observed).toEqual(expected)
    },
  )
})
