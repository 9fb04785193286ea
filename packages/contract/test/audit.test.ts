import { describe, expect, it } from 'vitest'
import { auditEventNames, auditEvents, operationIds, type Route, readActivityId, routes } from '../src/index.ts'

/** Recorded where no route of the table leads: by the operator's commands, and at the token endpoint. */
const recordedElsewhere = ['org_allowed_domain.add', 'org_allowed_domain.remove', 'service_account.sign_in']

describe('the route table', () => {
  it.each(operationIds)('says of %s which events it records, or why none', (id) => {
    const { method, audit }: Route = routes[id]
    if (method === 'GET') return
    expect(audit).toBeDefined()
    const isReason = audit !== undefined && 'none' in audit
    expect(isReason ? audit.none.length : (audit?.length ?? 0)).toBeGreaterThan(0)
  })

  it('says that links handed out by a GET are recorded', () => {
    expect(routes.listReleaseArtifacts.audit).toEqual(['release_artifact.download'])
  })

  it('records every event somewhere', () => {
    const recorded = operationIds.flatMap((id) => {
      const { audit = [] }: Route = routes[id]
      return 'none' in audit ? [] : [...audit]
    })
    expect([...new Set([...recorded, ...recordedElsewhere])].toSorted()).toEqual(auditEventNames.toSorted())
  })
})

describe('the activity of an event', () => {
  it('is that of its verb', () => {
    const verbs = { create: 1, add: 1, upload: 1, download: 2, delete: 4, remove: 4, revoke: 4, sign_in: 99 }
    for (const name of auditEventNames) {
      const verb = name.split('.')[1] ?? ''
      expect([name, readActivityId(name)]).toEqual([name, verbs[verb as keyof typeof verbs] ?? 3])
    }
    expect(Object.keys(auditEvents)).toHaveLength(44)
  })

  it('is 99 for what is recorded no longer', () => {
    expect(readActivityId('patch.archive')).toBe(99)
    expect(readActivityId('constructor')).toBe(99)
  })
})
