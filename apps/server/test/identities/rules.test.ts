import { describe, expect, it } from 'vitest'
import { canSignUp, readDomain } from '../../src/identities/rules.ts'

describe('whom the operator lets in', () => {
  it.each([
    ['open', 'ada@example.com', false, true],
    ['invited', 'ada@example.com', false, false],
    ['invited', 'ada@example.com', true, true],
    [['example.com'], 'ada@example.com', false, true],
    [['example.com'], 'ada@Example.COM', false, true],
    [['example.com'], 'ada@sub.example.com', false, false],
    [['example.com'], 'ada@evil-example.com', false, false],
    [['example.com'], 'ada@example.com.evil.example', false, false],
    [['example.com'], 'example.com@evil.example', false, false],
    [['example.com'], 'ada@other.example', true, true],
  ] as const)('with %j: %s, invited %s: %s', (policy, email, isInvited, expected) => {
    expect(canSignUp(typeof policy === 'string' ? policy : [...policy], { email, isInvited })).toBe(expected)
  })

  it('reads the domain after the last @', () => {
    expect(readDomain('"a@example.com"@Evil.Example')).toBe('evil.example')
  })
})
