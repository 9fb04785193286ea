import { describe, expect, it } from 'vitest'
import { isDomainAllowed } from '../../src/organizations/rules.ts'

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
