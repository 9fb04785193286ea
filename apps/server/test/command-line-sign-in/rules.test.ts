import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { addOutcome, judgeRefresh, readLoopbackTarget, reuseGraceMs } from '../../src/command-line-sign-in/rules.ts'

describe('the target of a sign-in', () => {
  it.each([
    'http://localhost:53682/callback',
    'http://127.0.0.1:53682/callback',
    'http://127.8.9.1:1/',
    'http://[::1]:53682/callback',
    'http://localhost:1/callback?state=1',
    'HTTP://LOCALHOST:53682/callback',
  ])('may be %s', (target) => {
    expect(readLoopbackTarget(target)).toBeDefined()
  })

  it.each([
    undefined,
    '',
    '/callback',
    '//localhost:1/callback',
    'https://localhost:1/callback',
    'ftp://localhost/',
    'javascript:alert(1)',
    'http://evil.example/callback',
    'http://localhost.evil.example:1/callback',
    'http://evil.example#localhost',
    'http://localhost:1@evil.example/callback',
    'http://user@localhost:1/callback',
    'http://user:secret@127.0.0.1:1/callback',
    'http://127.0.0.1.evil.example/',
    'http://localhost:1/callback#fragment',
    'http://0.0.0.0:1/callback',
    'http://10.0.0.1:1/callback',
    'http://[::ffff:10.0.0.1]:1/callback',
    'http://localhost/callback',
    'http://localhost:99999/callback',
    `http://localhost:1/${'x'.repeat(2000)}`,
  ])('is not %s', (target) => {
    expect(readLoopbackTarget(target)).toBeUndefined()
  })

  it('never leads elsewhere than to this machine, whatever is asked for', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.webUrl({ withFragments: true, withQueryParameters: true })), (asked) => {
        const target = readLoopbackTarget(asked)
        if (target === undefined) return true
        return target.protocol === 'http:' && /^(localhost|127\.[\d.]+|\[::1\])$/.test(target.hostname)
      }),
    )
  })

  it('keeps its own query beside the outcome', () => {
    const target = new URL('http://localhost:1/callback?state=a%26b')
    expect(addOutcome(target, { code: 'c&d' })).toBe('http://localhost:1/callback?state=a%26b&code=c%26d')
    expect(addOutcome(target, { error: 'access_denied' })).toContain('error=access_denied')
  })
})

describe('a refresh token', () => {
  const now = new Date('2026-05-01T12:00:00Z')
  const usedAgo = (ms: number) => ({ usedAt: new Date(now.getTime() - ms) })

  it('is rotated when it is new, and within the grace', () => {
    expect(judgeRefresh({ usedAt: null }, now)).toBe('rotate')
    expect(judgeRefresh(usedAgo(0), now)).toBe('rotate')
    expect(judgeRefresh(usedAgo(reuseGraceMs), now)).toBe('rotate')
  })

  it('counts as stolen afterwards', () => {
    expect(judgeRefresh(usedAgo(reuseGraceMs + 1), now)).toBe('reused')
  })
})
