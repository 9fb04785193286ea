import { describe, expect, it } from 'vitest'
import {
  apiKeyPermissions,
  collaboratorRolePermissions,
  operationIds,
  organizationRolePermissions,
  type Permission,
  permissions,
  type Route,
  routes,
} from '../src/index.ts'

/** Role columns from left to right, and the level R of API keys. */
const columns = ['owner', 'admin', 'appManager', 'developer', 'viewer', 'collabAdmin', 'collabDeveloper', 'R'] as const

/** Written out a second time, as a person reads it: + allowed, . not. */
const expected: Partial<Record<Permission, string>> = {
  'organization.read': '+++++..+',
  'members.read': '+++++..+',
  'organization.update': '++......',
  'organization.delete': '+.......',
  'organization.transfer_ownership': '+.......',
  'members.manage': '++......',
  'service_accounts.manage': '++......',
  'audit.read': '++......',
  'app.create': '+++.....',
  'app.read': '++++++++',
  'metrics.read': '++++++++',
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

function grants(column: (typeof columns)[number]): ReadonlySet<Permission> {
  if (column === 'collabAdmin') return collaboratorRolePermissions.admin
  if (column === 'collabDeveloper') return collaboratorRolePermissions.developer
  if (column === 'R') return apiKeyPermissions.release_and_patch
  return organizationRolePermissions[column]
}

describe('the permission table', () => {
  it.each(Object.entries(expected))('grants %s to %s', (permission, marks) => {
    const granted = columns.map((column) => (grants(column).has(permission as Permission) ? '+' : '.')).join('')
    expect(granted).toBe(marks)
  })

  it('has a row for every permission but those that every person has', () => {
    expect([...Object.keys(expected), 'account.manage', 'diagnostics.run'].toSorted()).toEqual(permissions.toSorted())
  })

  it('leaves a full key everything', () => {
    expect(apiKeyPermissions.full).toEqual(new Set(permissions))
  })

  it('gives somebody who is no member nothing', () => {
    expect(organizationRolePermissions.none.size).toBe(0)
  })
})

describe('the route table', () => {
  it('names each method and path once', () => {
    const names = operationIds.map((id) => `${routes[id].method} ${routes[id].path}`)
    expect(new Set(names).size).toBe(names.length)
  })

  it.each(operationIds)('judges %s on something that its path or body names', (operationId) => {
    const { access, path, body }: Route = routes[operationId]
    if (access.by !== 'bearer') return
    if (access.on === 'app') expect(path).toContain('{appId}')
    if (access.on === 'organization' && !path.includes('{organizationId}')) {
      expect(body?.safeParse({}).error?.issues.map((issue) => issue.path[0])).toContain('organization_id')
    }
  })
})
