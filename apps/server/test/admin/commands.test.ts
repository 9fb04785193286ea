import { randomUUID } from 'node:crypto'
import type { Command } from 'commander'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { formatTable } from '../../src/admin/format-table.ts'
import { buildProgram } from '../../src/admin/program.ts'
import { analyzeRelease } from '../../src/analysis/actions.ts'
import { verifyPassword } from '../../src/passwords/hash-password.ts'
import { createTestApp, createTestRelease, uploadTestReleaseArtifact } from '../support/publishing.ts'
import { createTestService, type TestService } from '../support/test-service.ts'
import { type AdminResult, runAdmin } from './run-admin.ts'

let service: TestService

beforeAll(async () => {
  service = await createTestService()
})
afterAll(() => service.stop())

async function run(args: string[], options: { input?: string } = {}): Promise<AdminResult> {
  const environment = { DATABASE_URL: service.connectionString, GODWIT_PUBLIC_URL: service.baseUrl }
  return await runAdmin(environment, args, options)
}

async function findUser(email: string) {
  return await service.deps.db.selectFrom('users').selectAll().where('email', '=', email).executeTakeFirstOrThrow()
}

function listCommands(command: Command): Command[] {
  return [command, ...command.commands.flatMap(listCommands)]
}

describe('--help', () => {
  it('says how each command is used, down to every argument and option', () => {
    const commands = listCommands(buildProgram())
    expect(commands.map((command) => command.name())).toEqual([
      'npm run admin --',
      'create-user',
      'reset-password',
      'set-plan',
      'allowed-domain',
      'add',
      'remove',
      'create-api-key',
      'replace-signing-keys',
      'replace-secret',
      'audit',
      'verify',
      'analyze',
      'backup',
      'restore',
      'migrate-blobs',
      'doctor',
      'list',
    ])
    for (const command of commands) {
      expect(command.helpInformation()).toMatch(/^Usage: npm run admin --/)
      for (const { description } of [...command.registeredArguments, ...command.options])
        expect(description).not.toBe('')
    }
  })

  it('needs neither settings nor a database', async () => {
    const { code, stdout, stderr } = await runAdmin({ PORT: 'x' }, ['allowed-domain', 'add', '--help'])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toMatch(/^Usage: npm run admin -- allowed-domain add .*<organizationId> <domain>/)
  })
})

describe('create-user', () => {
  it('prints the password that it made up, alone on standard output', async () => {
    const { code, stdout, stderr } = await run(['create-user', '--email', 'ada@example.com', '--name', 'Ada'])
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringMatching(/^[\w-]{20}\n$/) })
    expect(stderr).toContain('Created the account ada@example.com')
    expect(stderr).not.toContain(stdout.trim())
    const user = await findUser('ada@example.com')
    expect(user).toMatchObject({ display_name: 'Ada', jwt_issuer: service.baseUrl, plan: null })
    expect(user.email_verified_at).toBeInstanceOf(Date)
    expect(await verifyPassword(user.password_hash, stdout.trim())).toBe(true)
  })

  it('takes a password from standard input, and prints none', async () => {
    const input = 'plum anchor violet\n'
    const { code, stdout } = await run(['create-user', '--email', 'bob@example.com', '--password-stdin'], { input })
    expect({ code, stdout }).toEqual({ code: 0, stdout: '' })
    expect(await verifyPassword((await findUser('bob@example.com')).password_hash, 'plum anchor violet')).toBe(true)
  })

  it.each([
    ['a password that is too short', ['--email', 'new@example.com', '--password', 'short'], /^error: password: must/],
    ['an e-mail that is none', ['--email', 'new'], /^error: email: /],
    [
      'an e-mail that has an account, in any case',
      ['--email', 'ADA@example.com'],
      /^error: email: .* has an account already/,
    ],
    ['no e-mail', [], /^error: required option '--email/],
    [
      'two passwords',
      ['--email', 'new@example.com', '--password', 'x', '--password-stdin'],
      /^error: .*cannot be used with/,
    ],
  ])('refuses %s', async (_name, args, message) => {
    const { code, stdout, stderr } = await run(['create-user', ...args])
    expect({ code, stdout, stderr }).toEqual({ code: 1, stdout: '', stderr: expect.stringMatching(message) })
    expect(stderr).not.toMatch(/\n +at /)
    await expect(findUser('new@example.com')).rejects.toThrow()
  })
})

describe('reset-password', () => {
  it('sets a new password, ends the sessions and keeps the second factor', async () => {
    const { userId, email } = await service.createAccount()
    const secret = Buffer.from('secret')
    await service.deps.db
      .updateTable('users')
      .set({ totp_secret: secret, totp_enabled_at: new Date() })
      .where('id', '=', userId)
      .execute()
    const session = { id: randomUUID(), user_id: userId, client: 'browser', issuer: 'x', expires_at: new Date(2 ** 42) }
    await service.deps.db.insertInto('sessions').values(session).execute()
    const { code, stdout } = await run(['reset-password', email.toUpperCase()])
    expect(code).toBe(0)
    const user = await findUser(email)
    expect(await verifyPassword(user.password_hash, stdout.trim())).toBe(true)
    expect(user.totp_secret).toEqual(secret)
    const sessions = await service.deps.db.selectFrom('sessions').selectAll().where('user_id', '=', userId).execute()
    expect(sessions.filter(({ revoked_at }) => revoked_at === null)).toEqual([])
    await run(['reset-password', email, '--remove-second-factor', '--password-stdin'], { input: 'plum anchor violet' })
    expect(await findUser(email)).toMatchObject({ totp_secret: null, totp_enabled_at: null })
  })

  it('refuses an account that does not exist, in one line', async () => {
    expect(await run(['reset-password', 'nobody@example.com'])).toEqual({
      code: 1,
      stdout: '',
      stderr: 'error: no account has the e-mail nobody@example.com\n',
    })
  })
})

describe('set-plan', () => {
  it('sets the plan, and refuses one that there is not', async () => {
    const { email, api } = await service.createAccount()
    expect(await run(['set-plan', email, 'free'])).toMatchObject({ code: 0, stdout: '' })
    expect((await api.getCurrentUser()).has_active_subscription).toBe(false)
    const { code, stderr } = await run(['set-plan', email, 'gold'])
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining('free, pro, business, enterprise') })
    expect(await run(['set-plan', 'nobody@example.com', 'pro'])).toMatchObject({ code: 1 })
  })
})

describe('allowed-domain', () => {
  it('adds and removes, as often as it is told', async () => {
    const { organizationId } = await service.createAccount()
    const id = String(organizationId)
    const list = async () => (await run(['list', 'allowed-domains'])).stdout
    for (const _ of [1, 2]) {
      expect(await run(['allowed-domain', 'add', id, 'Example.com'])).toMatchObject({ code: 0 })
    }
    expect((await list()).match(/example\.com$/gm)).toHaveLength(1)
    for (const _ of [1, 2]) {
      expect(await run(['allowed-domain', 'remove', id, 'example.com'])).toMatchObject({ code: 0 })
    }
    expect(await list()).not.toContain('example.com')
  })

  it.each([
    ['an organization that there is not', ['999999', 'example.com']],
    ['an id that is none', ['1e3', 'example.com']],
    ['a domain that is none', ['1', 'not a domain']],
  ])('refuses %s', async (_name, args) => {
    const { code, stderr } = await run(['allowed-domain', 'add', ...args])
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringMatching(/^error: /) })
  })
})

describe('create-api-key', () => {
  it('prints a key that works, alone on standard output', async () => {
    const { email } = await service.createAccount()
    const { code, stdout } = await run(['create-api-key', email])
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringMatching(/^sb_api_[\w-]{43}\n$/) })
    expect((await service.client(stdout.trim()).getCurrentUser()).email).toBe(email)
  })

  it('cuts it down as it is told', async () => {
    const { email, api } = await service.createAccount()
    const options = ['--name', 'CI', '--expires-in', 'none', '--permission', 'release_and_patch']
    const { stdout } = await run(['create-api-key', email, ...options])
    await service.client(stdout.trim()).listApps()
    await expect(service.client(stdout.trim()).listApiKeys()).rejects.toMatchObject({ status: 403 })
    expect((await api.listApiKeys()).api_keys[0]).toMatchObject({
      name: 'CI',
      expires_at: null,
      permission: 'release_and_patch',
    })
  })
})

describe('list', () => {
  it('shows what there is, and no secret', async () => {
    const { email, api, organizationId, apiKey } = await service.createAccount()
    await api.createServiceAccount({ params: { organizationId }, body: { name: 'robot' } })
    expect((await run(['list', 'users'])).stdout).toContain(email)
    expect((await run(['list', 'organizations'])).stdout).toMatch(
      new RegExp(`^${organizationId} +personal +${email}`, 'm'),
    )
    expect((await run(['list', 'service-accounts'])).stdout).toMatch(/robot +developer/)
    const keys = (await run(['list', 'api-keys'])).stdout
    expect(keys).toContain(email)
    expect(keys).not.toContain(apiKey.slice(7))
    const { code, stderr } = await run(['list', 'secrets'])
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining('users, organizations') })
  })

  it('does not let the name of somebody steer the terminal', () => {
    const table = formatTable([{ id: 1, name: '\u001b[2J\nid\u202e', plan: null, verified: true }])
    expect(table).toBe('id  name      plan  verified\n1   ?[2J?id?  -     yes\n')
  })
})

describe('analyze', () => {
  it('has a server read again what is outdated, or everything, and lists what says too little', async () => {
    const owner = await service.createAccount()
    const appId = await createTestApp(owner)
    const releaseId = await createTestRelease(owner.api, appId)
    await uploadTestReleaseArtifact(owner.api, { appId, releaseId }, { bytes: Buffer.from('no archive') })
    expect(await run(['analyze'])).toEqual({ code: 0, stdout: '', stderr: '1 release will be analyzed.\n' })
    await analyzeRelease(service.deps, { releaseId, platform: 'android' })
    expect((await run(['analyze'])).stderr).toBe('There is nothing to analyze.\n')
    expect((await run(['analyze', '--all'])).stderr).toBe('1 release will be analyzed.\n')
    const { stdout } = await run(['list', 'unanalyzed-releases'])
    expect(stdout).toContain(appId)
    expect(stdout).toMatch(/android +aab +damaged_archive/)
  })
})

describe('a command', () => {
  it('that cannot reach the database says so in one line', async () => {
    const { code, stdout, stderr } = await runAdmin({ DATABASE_URL: 'postgres://godwit:hunter2@127.0.0.1:1/x' }, [
      'list',
      'users',
    ])
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toMatch(/^error: .*ECONNREFUSED.*\n$/)
    expect(stderr).not.toContain('hunter2')
  })

  it('makes no database where there is none', async () => {
    const { code, stderr } = await runAdmin({ GODWIT_DATA_DIR: '/nonexistent/godwit' }, ['list', 'users'])
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringMatching(/^error: There is no database in .*\n$/),
    })
  })
})

describe('replace-signing-keys', () => {
  it('leaves one key, a new one', async () => {
    const { kid } = await service.deps.signingKeys.current()
    expect((await run(['replace-signing-keys'])).code).toBe(0)
    const kids = await service.deps.db.selectFrom('signing_keys').select('kid').execute()
    expect(kids).toHaveLength(1)
    expect(kids[0]?.kid).not.toBe(kid)
  })
})

describe('replace-secret', () => {
  it('makes one that refuses the links of before, from the next start on', async () => {
    const link = service.deps.urls.sign('download', '0'.repeat(32))
    expect((await fetch(link)).status).toBe(404)
    expect((await run(['replace-secret', 'url-signing'])).code).toBe(0)
    await service.restart()
    expect((await fetch(link)).status).toBe(403)
    expect((await fetch(service.deps.urls.sign('download', '0'.repeat(32)))).status).toBe(404)
    expect((await run(['replace-secret', 'installation'])).code).toBe(1)
  })
})
