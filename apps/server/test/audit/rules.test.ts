import { auditEventNames, readActivityId } from '@godwit/contract'
import { describe, expect, it } from 'vitest'
import {
  genesisHash,
  hashEvent,
  listStoredNames,
  presentEvent,
  readCursor,
  sealEvent,
  writeCursor,
} from '../../src/audit/rules.ts'
import { expectOcsf, validateOcsf } from '../support/ocsf.ts'

function seal(operation: string) {
  return sealEvent({
    organizationId: 7,
    seq: 3,
    eventTime: new Date('2026-03-01T12:00:00.123Z'),
    operation,
    recorded: {
      uid: '5f0c54a8-7a3c-4f9a-b1f4-3d6f3c1f0a11',
      actor: { user: { uid: '5', name: 'Ada', email_addr: 'ada@example.com', type_id: 1 } },
      src_endpoint: { ip: '2001:db8::1' },
      resources: [{ type: 'app', uid: 'a1' }],
      unmapped: { actor_source: 'session' },
    },
    previousHash: genesisHash,
  })
}

describe('an event', () => {
  it('is of the class for every name that the contract has', () => {
    for (const name of auditEventNames) {
      const { text, hash } = seal(name)
      expectOcsf(JSON.parse(text))
      expect(hashEvent(text)).toEqual(hash)
    }
  })

  it('has the activity of its name: 1 create, 2 read, 3 update, 4 delete, 99 anything else', () => {
    const activities = {
      'app.create': 1,
      'release_artifact.upload': 1,
      'release_artifact.download': 2,
      'patch.promote': 3,
      'org_member.remove': 4,
      'service_account.sign_in': 99,
    }
    for (const [name, activityId] of Object.entries(activities)) expect(readActivityId(name)).toBe(activityId)
  })

  it.each([
    ['an attribute that OCSF does not know', { surprise: 1 }],
    ['another type_uid', { type_uid: 600301 }],
    ['an address that is none', { src_endpoint: { ip: 'localhost' } }],
    ['no source at all', { src_endpoint: {} }],
    ['a time in text', { time: '2026' }],
    ['a service account with an e-mail', { actor: { user: { uid: 'sa_1', email_addr: 'a@b', type_id: 4 } } }],
    ['staff with an id', { actor: { user: { uid: '1', name: 'Godwit staff', type_id: 99, type: 'godwit_staff' } } }],
    ['nothing that was acted on', { resources: [] }],
    ['a number among the details', { unmapped: { actor_source: 'session', n: 1 } }],
  ])('with %s is not let through by the tests', (_, change) => {
    expect(validateOcsf({ ...JSON.parse(seal('app.update').text), ...change })).not.toEqual([])
  })
})

describe('a renamed event', () => {
  const renamed = { 'app.rename': 'app.update', 'app.retitle': 'app.update' } as const

  it('appears under its new name, with its activity, also where it was recorded before', () => {
    const event = presentEvent(seal('app.rename').text, { isActorGone: false, renamed })
    expect([event.api.operation, event.activity_id, event.type_uid]).toEqual(['app.update', 3, 600303])
  })

  it('is found by its new name', () => {
    expect(listStoredNames('app.update', renamed)).toEqual(['app.update', 'app.rename', 'app.retitle'])
    expect(listStoredNames('app.create', renamed)).toEqual(['app.create'])
  })
})

describe('an event that is recorded no longer', () => {
  it('keeps the name that it has, as activity 99', () => {
    const event = presentEvent(seal('gadget.calibrate').text, { isActorGone: false, renamed: {} })
    expect([event.api.operation, event.activity_id, event.type_uid]).toEqual(['gadget.calibrate', 99, 600399])
    expectOcsf(event)
  })
})

describe('an event of somebody who is gone', () => {
  it('has no uid, and everything else', () => {
    const text = seal('app.update').text
    const { actor, ...rest } = presentEvent(text, { isActorGone: true })
    expect(actor.user).toEqual({ name: 'Ada', email_addr: 'ada@example.com', type_id: 1 })
    expect({ ...rest, actor: JSON.parse(text).actor }).toEqual(JSON.parse(text))
  })
})

describe('a cursor', () => {
  it('is read as it was written', () => {
    for (const cursor of [
      { organizationId: 1, seq: 0 },
      { organizationId: 999_999_999, seq: 123_456_789_012 },
    ]) {
      expect(readCursor(writeCursor(cursor))).toEqual(cursor)
    }
  })

  it('is nothing else', () => {
    const texts = ['1.1', '2.1.1', '1.1.1.1', '1.-1.1', '1.1.1e3', '1.01.1', `1.1.${'9'.repeat(16)}`]
    for (const text of texts) expect(readCursor(Buffer.from(text).toString('base64url')), text).toBeUndefined()
  })
})
