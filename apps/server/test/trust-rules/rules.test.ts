import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { CiJob } from '../../src/trust-rules/ci-job.ts'
import { chooseRule, matchesPattern, type TrustCondition, trustsJob } from '../../src/trust-rules/rules.ts'

const job: CiJob = {
  issuer: 'https://ci.example.com',
  repository: 'Acme/App',
  workflowRef: 'Acme/App/.github/workflows/release.yml@refs/heads/main',
  workflowPath: '.github/workflows/release.yml',
  workflowFolder: '.github/workflows/',
  environment: 'production',
  ref: 'refs/heads/main',
  runId: '7',
}
const rule: TrustCondition = {
  issuer: 'https://ci.example.com',
  repository: 'acme/app',
  workflow: 'release.yml',
  environment: null,
  ref_pattern: null,
}

describe('a trust rule', () => {
  it.each<[string, Partial<TrustCondition>, Partial<CiJob>, boolean]>([
    ['takes the repository in any case', {}, {}, true],
    ['refuses another issuer', {}, { issuer: 'https://other.example.com' }, false],
    ['refuses an issuer that differs by a slash', {}, { issuer: 'https://ci.example.com/' }, false],
    ['refuses another repository', {}, { repository: 'acme/app2' }, false],
    ['refuses a repository whose name begins the same', { repository: 'acme/ap' }, {}, false],
    ['takes the path of a workflow', { workflow: '.github/workflows/release.yml' }, {}, true],
    ['refuses the same file name elsewhere', { workflow: 'ci/release.yml' }, {}, false],
    ['refuses a workflow in another case', { workflow: 'Release.yml' }, {}, false],
    ['refuses another workflow', {}, { workflowPath: '.github/workflows/test.yml' }, false],
    [
      'takes a workflow in the root where that is the folder',
      {},
      { workflowPath: 'release.yml', workflowFolder: '' },
      true,
    ],
    ['takes the environment that it names', { environment: 'production' }, {}, true],
    ['refuses another environment', { environment: 'staging' }, {}, false],
    ['refuses an environment in another case', { environment: 'Production' }, {}, false],
    [
      'refuses a job without the environment that it names',
      { environment: 'production' },
      { environment: undefined },
      false,
    ],
    ['takes any environment, and none, when it names none', {}, { environment: undefined }, true],
    ['takes the ref that it names', { ref_pattern: 'refs/heads/main' }, {}, true],
    ['refuses another ref', { ref_pattern: 'refs/heads/main' }, { ref: 'refs/heads/main2' }, false],
    ['refuses a tag that is called like the branch', { ref_pattern: 'refs/heads/*' }, { ref: 'refs/tags/main' }, false],
    ['refuses a job without a ref when it names one', { ref_pattern: '**' }, { ref: undefined }, false],
    ['takes any ref, and none, when it names none', {}, { ref: undefined }, true],
  ])('%s', (_name, condition, claims, expected) => {
    expect(trustsJob({ ...rule, ...condition }, { ...job, ...claims })).toBe(expected)
  })
})

describe('a ref pattern', () => {
  it.each([
    ['refs/heads/main', 'refs/heads/main', true],
    ['refs/heads/*', 'refs/heads/main', true],
    ['refs/heads/*', 'refs/heads/', true],
    ['refs/heads/*', 'refs/heads/feature/x', false],
    ['refs/heads/**', 'refs/heads/feature/x', true],
    ['refs/heads/**', 'refs/heads', false],
    ['refs/tags/v*', 'refs/tags/v1.2.3', true],
    ['refs/tags/v*', 'refs/tags/v1/x', false],
    ['refs/tags/v**', 'refs/tags/v1/x', true],
    ['refs/*/main', 'refs/heads/main', true],
    ['*', 'refs/heads/main', false],
    ['**', 'refs/heads/main', true],
    ['**', '', true],
    ['main', 'refs/heads/main', false],
    ['refs/heads/main', 'refs/heads/MAIN', false],
    ['refs/heads/{main,beta}', 'refs/heads/main', false],
    ['refs/heads/{main,beta}', 'refs/heads/{main,beta}', true],
    ['refs/heads/@(main)', 'refs/heads/main', false],
    ['refs/heads/(main|beta)', 'refs/heads/main', false],
    ['!refs/heads/main', 'refs/heads/beta', false],
    ['refs/heads/v1.0', 'refs/heads/v1x0', false],
    ['refs/heads/ma[i]n', 'refs/heads/main', false],
    ['refs/heads/\\*', 'refs/heads/x', false],
    ['refs/heads/*', 'refs/heads/😀', true],
    ['refs/heads/*', 'refs/heads/a\nb', true],
  ])('%s against %j is %s', (pattern, text, expected) => {
    expect(matchesPattern(pattern, text)).toBe(expected)
  })

  const pieces = fc.array(fc.constantFrom('a', 'b', '/', '*', '**', '.'), { maxLength: 8 }).map((list) => list.join(''))
  const texts = fc.array(fc.constantFrom('a', 'b', '/', '.'), { maxLength: 10 }).map((list) => list.join(''))

  it('says what the regular expression of the same meaning says', () => {
    fc.assert(
      fc.property(pieces, texts, (pattern, text) => {
        const source = pattern.replaceAll(/\*+|\./g, (found) =>
          found === '.' ? '\\.' : found === '*' ? '[^/]*' : '.*',
        )
        expect(matchesPattern(pattern, text)).toBe(new RegExp(`^${source}$`, 's').test(text))
      }),
    )
  })

  it('without a star stands for itself alone', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.string({ unit: 'grapheme' }), (pattern, text) => {
        fc.pre(!pattern.includes('*'))
        expect(matchesPattern(pattern, pattern)).toBe(true)
        expect(matchesPattern(pattern, text)).toBe(pattern === text)
      }),
    )
  })

  it('takes no longer for a pattern made to take long', () => {
    const startedAt = performance.now()
    expect(matchesPattern('*a'.repeat(128), `${'a'.repeat(1000)}b`)).toBe(false)
    expect(performance.now() - startedAt).toBeLessThan(1000)
  })
})

describe('the choice among rules', () => {
  const a1 = { id: 1, service_account_id: 10 }
  const a2 = { id: 2, service_account_id: 10 }
  const b = { id: 3, service_account_id: 20 }

  it('is the oldest rule of the one account', () => {
    expect(chooseRule([a2, a1], undefined)).toEqual({ rule: a1 })
  })
  it('is refused when several accounts trust the job, until one is named', () => {
    expect(chooseRule([a1, b], undefined)).toEqual({ refusal: 'several' })
    expect(chooseRule([a1, b], 20)).toEqual({ rule: b })
  })
  it('is refused when no rule is left', () => {
    expect(chooseRule([], undefined)).toEqual({ refusal: 'none' })
    expect(chooseRule([a1], 20)).toEqual({ refusal: 'none' })
  })
})
