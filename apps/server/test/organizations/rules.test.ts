import { describe, expect, it } from 'vitest'
import { isDomainAllowed, monthOf } from '../../src/organizations/rules.ts'

describe('monthOf', () => {
  it.each([
    ['2026-11-21T12:00:00Z', '2026-11-01T00:00:00Z', '2026-12-01T00:00:00Z'],
    ['2026-12-31T23:59:59.999Z', '2026-12-01T00:00:00Z', '2027-01-01T00:00:00Z'],
    ['2028-02-01T00:00:00Z', '2028-02-01T00:00:00Z', '2028-03-01T00:00:00Z'],
  ])('puts %s between %s and %s', (now, start, end) => {
    expect(monthOf(new Date(now))).toEqual({ start: new Date(start), end: new Date(end) })
  })
})

describe('isDomainAllowed', () => {
  it('takes every domain while there is no list', () => {
    expect(isDomainAllowed([], 'a@b.example')).toBe(true)
  })

  it('takes the domains of the list in any case, and neither their subdomains nor what only ends like them', () => {
    const domains = ['acme.example']
    expect(isDomainAllowed(domains, 'ada@Acme.Example')).toBe(true)
    expect(isDomainAllowed(domains, 'ada@mail.acme.example')).toBe(false)
    expect(isDomainAllowed(domains, 'ada@notacme.example')).toBe(false)
    expect(isDomainAllowed(domains, '"ada@acme.example"@evil.example')).toBe(false)
  })
})
