import { randomBytes, randomUUID } from 'node:crypto'
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { createApiKey } from '../../src/api-keys/actions.ts'
import type { Deps } from '../../src/deps.ts'
import { findOrLinkAccount, type Identity, signUpWithIdentity } from '../../src/identities/actions.ts'
import type { SignUpPolicy } from '../../src/identity-providers/sign-in-settings.ts'
import { hashPassword } from '../../src/passwords/hash-password.ts'
import { startClientSession } from '../../src/sessions/actions.ts'
import { createAccount } from '../../src/users/actions.ts'
import { createTestService, type TestService } from '../support/test-service.ts'

let service: TestService
let deps: Deps

beforeAll(async () => {
  service = await createTestService()
  ;({ deps } = service)
})
afterAll(() => service.stop())

function createIdentity(verifiedEmail?: string): Identity {
  return { issuer: 'https://issuer.example', subject: randomUUID(), verifiedEmail }
}

const newEmail = () => `${randomUUID()}@example.com`
const noName = { displayName: null }

const listUsers = (email: string) => deps.db.selectFrom('users').select('id').where('email', '=', email).execute()
const listLinks = (subject: string) =>
  deps.db.selectFrom('user_identities').select('user_id').where('subject', '=', subject).execute()

async function createUnverifiedAccount(email: string): Promise<{ userId: number; organizationId: number }> {
  const password = 'a password of somebody else'
  const account = await createAccount(deps.db, {
    email,
    displayName: null,
    jwtIssuer: service.baseUrl,
    passwordHash: await hashPassword(password),
    isEmailVerified: false,
  })
  if (account === undefined) throw new Error('the e-mail is taken')
  return { userId: account.user.id, organizationId: account.organization.id }
}

describe('an identity that signs in', () => {
  it('gets no account, and is linked to none, without a verified e-mail', async () => {
    const identity = createIdentity()
    expect(await findOrLinkAccount(deps, identity)).toBeUndefined()
    await expect(signUpWithIdentity(deps, identity, noName)).rejects.toMatchObject({ code: 'forbidden' })
    expect(await listLinks(identity.subject)).toEqual([])
  })

  it('is its issuer and its subject together: the same subject of another issuer is somebody else', async () => {
    const identity = createIdentity(newEmail())
    const account = await signUpWithIdentity(deps, identity, noName)
    expect(await findOrLinkAccount(deps, { ...identity, verifiedEmail: undefined })).toEqual(account)
    const foreign = { ...identity, issuer: 'https://other.example', verifiedEmail: undefined }
    expect(await findOrLinkAccount(deps, foreign)).toBeUndefined()
  })

  it('goes by its link, not by its e-mail', async () => {
    const other = await service.createAccount()
    const identity = createIdentity(newEmail())
    const account = await signUpWithIdentity(deps, identity, noName)
    expect(await findOrLinkAccount(deps, { ...identity, verifiedEmail: other.email })).toEqual(account)
    expect(await signUpWithIdentity(deps, { ...identity, verifiedEmail: other.email }, noName)).toEqual(account)
  })

  it('leaves an account whose e-mail was shown before as it was', async () => {
    const account = await service.createAccount()
    await findOrLinkAccount(deps, createIdentity(account.email))
    expect(await account.api.getCurrentUser()).toMatchObject({ id: account.userId })
  })
})

describe('sign-up with an identity', () => {
  const withPolicy = (signUp: SignUpPolicy): Deps => ({ ...deps, config: { ...deps.config, signUp } })
  const refusal = { code: 'forbidden', details: 'Only people who were invited can have an account here.' }

  it('is for everybody when it is open', async () => {
    const email = newEmail()
    expect(await signUpWithIdentity(withPolicy('open'), createIdentity(email), noName)).toMatchObject({ email })
  })

  it('is for the domains that the operator lists', async () => {
    const policy = withPolicy(['example.com'])
    const email = newEmail()
    expect(await signUpWithIdentity(policy, createIdentity(email), noName)).toMatchObject({ email })
    const foreign = `${randomUUID()}@other.example`
    await expect(signUpWithIdentity(policy, createIdentity(foreign), noName)).rejects.toMatchObject(refusal)
    expect(await listUsers(foreign)).toEqual([])
  })

  it('is for the invited when it is not open, as long as the invitation is', async () => {
    const { organizationId } = await service.createAccount()
    const invite = async (email: string, changes: { expiresAt?: Date; status?: 'revoked' } = {}) =>
      await deps.db
        .insertInto('invitations')
        .values({
          organization_id: organizationId,
          email: email.toUpperCase(),
          role: 'developer',
          token_hash: randomBytes(32),
          is_mailed: false,
          status: changes.status ?? 'pending',
          expires_at: changes.expiresAt ?? new Date(Date.now() + 60_000),
        })
        .execute()
    const policy = withPolicy('invited')
    const [invited, late, revoked, stranger] = [newEmail(), newEmail(), newEmail(), newEmail()]
    await invite(invited)
    await invite(late, { expiresAt: new Date(Date.now() - 1000) })
    await invite(revoked, { status: 'revoked' })
    expect(await signUpWithIdentity(policy, createIdentity(invited), noName)).toMatchObject({ email: invited })
    for (const email of [late, revoked, stranger]) {
      await expect(signUpWithIdentity(policy, createIdentity(email), noName)).rejects.toMatchObject(refusal)
    }
  })

  it('asks nobody for an invitation who has an account', async () => {
    const account = await service.createAccount()
    const identity = createIdentity(account.email)
    expect(await signUpWithIdentity(withPolicy('invited'), identity, noName)).toMatchObject({ id: account.userId })
  })
})

describe('at once', () => {
  const rounds = Array.from({ length: 10 })

  it('the same identity makes one account with one link', async () => {
    for (const _ of rounds) {
      const email = newEmail()
      const identity = createIdentity(email)
      const accounts = await Promise.all([1, 2, 3, 4].map(() => signUpWithIdentity(deps, identity, noName)))
      expect(new Set(accounts.map(({ id }) => id)).size).toBe(1)
      expect(await listUsers(email)).toHaveLength(1)
      expect(await listLinks(identity.subject)).toHaveLength(1)
    }
  })

  it('two identities with one e-mail make one account, linked to both', async () => {
    for (const _ of rounds) {
      const email = newEmail()
      const identities = [createIdentity(email), createIdentity(email.toUpperCase())]
      const accounts = await Promise.all(identities.map((identity) => signUpWithIdentity(deps, identity, noName)))
      expect(accounts[1]?.id).toBe(accounts[0]?.id)
      for (const { subject } of identities) expect(await listLinks(subject)).toEqual([{ user_id: accounts[0]?.id }])
    }
  })

  it('one identity with two e-mails signs in to one account, and leaves no account that nobody can reach', async () => {
    for (const _ of rounds) {
      const identity = createIdentity()
      const emails = [newEmail(), newEmail()]
      const accounts = await Promise.all(
        emails.map((verifiedEmail) => signUpWithIdentity(deps, { ...identity, verifiedEmail }, noName)),
      )
      expect(accounts[1]).toEqual(accounts[0])
      const users = await Promise.all(emails.map(listUsers))
      expect(users.flat()).toEqual([{ id: accounts[0]?.id }])
    }
  })

  it('one identity with the e-mails of two accounts signs in to one of them', async () => {
    for (const _ of rounds) {
      const identity = createIdentity()
      const owners = [await service.createAccount(), await service.createAccount()]
      const accounts = await Promise.all(
        owners.map(({ email }) => findOrLinkAccount(deps, { ...identity, verifiedEmail: email })),
      )
      expect(accounts[1]).toEqual(accounts[0])
      expect(await listLinks(identity.subject)).toEqual([{ user_id: accounts[0]?.id }])
    }
  })
})

describe('an account that somebody prepared for the e-mail of another', () => {
  it('is taken from them with every way in that they left open', async () => {
    const email = newEmail()
    const attacker = await service.createAccount()
    const { userId, organizationId } = await createUnverifiedAccount(email)
    const key = { name: 'mine', permission: 'full', expiresAt: null } as const
    await createApiKey(deps.db, { holder: { userId }, ...key })
    const now = deps.clock()
    const signIn = { userId, issuer: service.baseUrl, isMfa: false, userAgent: null, address: null }
    const session = await startClientSession(deps.db, { ...signIn, client: 'cli', now, lifetimeMs: 60_000 })
    const machine = await deps.db
      .insertInto('service_accounts')
      .values({ organization_id: organizationId, name: 'ci', role: 'admin' })
      .returning('id')
      .executeTakeFirstOrThrow()
    await createApiKey(deps.db, { holder: { serviceAccountId: machine.id }, ...key })
    const appId = randomUUID()
    await deps.db
      .insertInto('apps')
      .values({ id: appId, organization_id: organizationId, display_name: 'bait' })
      .execute()
    await deps.db
      .insertInto('app_collaborators')
      .values({ app_id: appId, user_id: attacker.userId, role: 'admin' })
      .execute()
    await deps.db
      .insertInto('invitations')
      .values({
        organization_id: organizationId,
        app_id: appId,
        email: 'second@example.com',
        role: 'admin',
        token_hash: Buffer.from('hash'),
        is_mailed: false,
        expires_at: new Date(now.getTime() + 60_000),
      })
      .execute()

    expect(await findOrLinkAccount(deps, createIdentity(email))).toEqual({ display_name: null, id: userId, email })

    const { db } = deps
    const invitations = await db.selectFrom('invitations').select('status').where('app_id', '=', appId).execute()
    expect(invitations).toEqual([{ status: 'revoked' }])
    const events = await db
      .selectFrom('audit_outbox')
      .select('operation')
      .where('organization_id', '=', organizationId)
      .execute()
    expect(events.map(({ operation }) => operation)).toEqual([
      'service_account.delete',
      'app_collaborator.remove',
      'invitation.revoke',
    ])
    const user = await db.selectFrom('users').selectAll().where('id', '=', userId).executeTakeFirstOrThrow()
    expect(user).toMatchObject({ password_hash: null, totp_secret: null, email_verified_at: expect.any(Date) })
    expect(await db.selectFrom('sessions').select('id').where('id', '=', session.id).execute()).toEqual([])
    const keys = db
      .selectFrom('api_keys')
      .select('id')
      .where((eb) => eb.or([eb('user_id', '=', userId), eb('service_account_id', '=', machine.id)]))
    expect(await keys.execute()).toEqual([])
    expect(await db.selectFrom('service_accounts').select('id').where('id', '=', machine.id).execute()).toEqual([])
    expect(await db.selectFrom('app_collaborators').select('role').where('app_id', '=', appId).execute()).toEqual([])
  })

  it('is taken once: what its owner sets up afterwards stays', async () => {
    const email = newEmail()
    const { userId } = await createUnverifiedAccount(email)
    await Promise.all(
      [createIdentity(email), createIdentity(email)].map((identity) => findOrLinkAccount(deps, identity)),
    )
    const { key } = await createApiKey(deps.db, { holder: { userId }, name: 'x', permission: 'full', expiresAt: null })
    await findOrLinkAccount(deps, createIdentity(email))
    expect(await service.client(key).getCurrentUser()).toMatchObject({ id: userId })
    const links = await deps.db.selectFrom('user_identities').select('id').where('user_id', '=', userId).execute()
    expect(links).toHaveLength(3)
  })

  it('stays with who shows at the same moment that the e-mail is theirs', async () => {
    const email = newEmail()
    const { userId, organizationId } = await createUnverifiedAccount(email)
    const { db } = deps
    const machine = { organization_id: organizationId, name: 'ci', role: 'developer' } as const
    await db.insertInto('service_accounts').values(machine).execute()
    let linking: Promise<unknown> | undefined
    await db.transaction().execute(async (trx) => {
      await trx.updateTable('users').set({ email_verified_at: new Date() }).where('id', '=', userId).execute()
      linking = findOrLinkAccount(deps, createIdentity(email))
      await vi.waitFor(async () => {
        const waiting = sql<{ pid: number }>`select pid from pg_stat_activity
          where datname = current_database() and wait_event_type = 'Lock'`
        expect((await waiting.execute(db)).rows).toHaveLength(1)
      })
    })
    expect(await linking).toMatchObject({ id: userId })
    const user = await db.selectFrom('users').select('password_hash').where('id', '=', userId).executeTakeFirstOrThrow()
    expect(user.password_hash).not.toBeNull()
    const machines = db.selectFrom('service_accounts').select('name').where('organization_id', '=', organizationId)
    expect(await machines.execute()).toEqual([{ name: 'ci' }])
  })

  it('stays as it is when the e-mail of the identity is not verified', async () => {
    const email = newEmail()
    const { userId } = await createUnverifiedAccount(email)
    expect(await findOrLinkAccount(deps, createIdentity())).toBeUndefined()
    const user = await deps.db.selectFrom('users').selectAll().where('id', '=', userId).executeTakeFirstOrThrow()
    expect(user).toMatchObject({ email_verified_at: null, password_hash: expect.any(String) })
  })
})
