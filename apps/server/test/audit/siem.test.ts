import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sealEvents } from '../../src/audit/seal-events.ts'
import { createTeam, type Team } from '../organizations/teams.ts'
import { expectOcsf } from '../support/ocsf.ts'
import { createTestService, type TestService } from '../support/test-service.ts'
import { describePerson, record } from './events.ts'

const script = new URL('../../../../docs/examples/poll-audit-log.ts', import.meta.url).pathname
const startedAt = Date.now()
/** A minute is 60 ms. */
const clock = () => new Date(startedAt + (Date.now() - startedAt) * 1000)

let service: TestService
let team: Team
let key: string
let dir: string
let file: string
let poller: ChildProcess | undefined

beforeAll(async () => {
  service = await createTestService({ clock })
  team = await createTeam(service)
  dir = await mkdtemp(join(tmpdir(), 'godwit-siem-'))
  file = join(dir, 'audit.jsonl')
  const { api } = team.owner
  const params = { organizationId: team.organizationId }
  const { id: serviceAccountId } = await api.createServiceAccount({ params, body: { name: 'SIEM' } })
  const ofAccount = { ...params, serviceAccountId }
  await api.updateServiceAccount({ params: ofAccount, body: { role: 'auditor' } })
  key = (await api.createServiceAccountKey({ params: ofAccount, body: { name: 'SIEM' } })).key
})
afterAll(async () => {
  poller?.kill('SIGKILL')
  await service.stop()
  await rm(dir, { recursive: true, force: true })
})

function startPolling(): ChildProcess {
  const options = [
    '--url',
    service.baseUrl,
    '--organization',
    String(team.organizationId),
    '--to',
    file,
    '--every',
    '0.02',
  ]
  return spawn(process.execPath, [script, ...options], {
    env: { PATH: process.env.PATH, GODWIT_API_KEY: key },
    stdio: 'ignore',
  })
}

async function readCopy() {
  const text = await readFile(file, 'utf8').catch(() => '')
  return text.split('\n').slice(0, -1)
}

async function untilCopied(count: number): Promise<void> {
  while ((await readCopy()).length < count) await wait(20)
}

const uidOf = (event: string) => JSON.parse(event).metadata.uid as string

describe('the script of the documentation', () => {
  it('ends with exactly the events that happened, whatever ends in between', { timeout: 60_000 }, async () => {
    poller = startPolling()
    const { api } = team.owner
    const params = { organizationId: team.organizationId }
    const doer = describePerson(team.owner.userId)
    const slow = await service.deps.db.startTransaction().execute()
    await record(slow, { organizationId: team.organizationId, at: clock(), doer, label: 'slow' })
    for (let index = 0; index < 120; index += 1)
      await api.updateOrganization({ params, body: { name: `Acme ${index}` } })
    await untilCopied(50)
    await slow.commit().execute()
    poller.kill('SIGKILL')
    await once(poller, 'exit')
    // As if it had been ended while it wrote, and before the cursor was: a line is cut, the cursor is an old one.
    const lines = await readCopy()
    await writeFile(file, `${lines.join('\n')}\n{"metadata":{"uid":"cu`)
    await rm(`${file}.cursor`)
    for (let index = 0; index < 30; index += 1)
      await api.updateOrganization({ params, body: { name: `Beta ${index}` } })
    poller = startPolling()
    await service.restart()
    for (let index = 0; index < 30; index += 1) {
      await team.owner.api.updateOrganization({ params, body: { name: `Gamma ${index}` } })
    }
    await sealEvents(service.deps.db)
    const happened = await service.deps.db
      .selectFrom('audit_events')
      .select('event')
      .where('organization_id', '=', team.organizationId)
      .orderBy('seq')
      .execute()
    expect(happened.length).toBeGreaterThan(180)
    await untilCopied(happened.length)
    const copied = await readCopy()
    for (const event of copied) expectOcsf(JSON.parse(event))
    expect(copied.map(uidOf)).toEqual(happened.map(({ event }) => uidOf(event)))
    expect(happened.some(({ event }) => JSON.parse(event).unmapped.label === 'slow')).toBe(true)
  })

  it('ends when its key is revoked', async () => {
    const { api } = team.owner
    const params = { organizationId: team.organizationId }
    const [account] = (await api.listServiceAccounts({ params })).service_accounts
    const running = poller as ChildProcess
    const exited = once(running, 'exit')
    await api.deleteServiceAccount({ params: { ...params, serviceAccountId: account?.id ?? 0 } })
    expect((await exited)[0]).toBe(1)
  })
})
