import { describe, expect, it } from 'vitest'
import {
  chooseAlgorithms,
  expectedIssuer,
  findClaimsFault,
  findKeyFault,
  mayIssue,
  readDisplayName,
  readIsMfa,
  readVerifiedEmail,
} from '../../src/identity-providers/rules.ts'

const entra = (tenant: string) => `https://login.microsoftonline.com/${tenant}/v2.0`
const tenant = '11111111-2222-3333-4444-555555555555'
const otherTenant = '99999999-2222-3333-4444-555555555555'
const personal = '9188040d-6c67-4c5b-b112-36a304b66dad'

describe('which issuers a provider answers for', () => {
  it.each([
    ['https://accounts.google.com', 'https://accounts.google.com', true],
    ['https://sso.example.com/', 'https://sso.example.com', true],
    ['https://accounts.google.com', 'https://accounts.google.com.evil.example', false],
    ['https://accounts.google.com', 'accounts.google.com', false],
    ['https://sso.example.com/a', 'https://sso.example.com/b', false],
    [entra('common'), entra(tenant), true],
    [entra('common'), entra(personal), true],
    [entra('organizations'), entra(tenant), true],
    [entra('organizations'), entra(personal), false],
    [entra('common'), entra('common'), false],
    [entra('common'), `https://sts.windows.net/${tenant}/`, false],
    [entra('common'), `https://evil.example/${tenant}/v2.0`, false],
    [entra('common'), `${entra(tenant)}/../evil`, false],
  ])('configured with %s, a token of %s: %s', (configured, issuer, expected) => {
    expect(mayIssue(configured, issuer)).toBe(expected)
  })

  it("puts the token's tenant into the template of Entra ID, and leaves other issuers as they are", () => {
    expect(expectedIssuer(entra('{tenantid}'), { tid: tenant })).toBe(entra(tenant))
    expect(expectedIssuer(entra('{tenantid}'), {})).toBe(entra('{tenantid}'))
    expect(expectedIssuer('https://accounts.google.com', { tid: tenant })).toBe('https://accounts.google.com')
  })

  it('refuses a token of Entra ID whose tenant is not the one of its issuer', () => {
    const claims = { iss: entra(tenant), tid: tenant, aud: 'us', iat: 0, sub: 'x' }
    const expected = {
      configuredIssuer: entra('common'),
      metadataIssuer: entra('{tenantid}'),
      clientId: 'us',
      now: new Date(0),
      toleranceSeconds: 30,
    }
    expect(findClaimsFault(claims, expected)).toBeUndefined()
    expect(findClaimsFault({ ...claims, tid: otherTenant }, expected)).toBe('it is from another issuer')
    expect(findClaimsFault({ ...claims, tid: undefined }, expected)).toBe('it is from another issuer')
    const single = { ...expected, configuredIssuer: entra(otherTenant), metadataIssuer: entra(otherTenant) }
    expect(findClaimsFault(claims, single)).toBe('it is from another issuer')
  })
})

describe('the key of a token of Entra ID', () => {
  const claims = { iss: entra(tenant), tid: tenant }

  it.each([
    [{ kid: 'a' }, undefined],
    [{ kid: 'a', issuer: entra('{tenantid}') }, undefined],
    [{ kid: 'a', issuer: entra(tenant) }, undefined],
    [{ kid: 'a', issuer: entra(personal) }, 'its key signs for another issuer'],
  ])('%j: %s', (key, expected) => {
    expect(findKeyFault(key, claims)).toBe(expected)
  })
})

describe('the verified e-mail', () => {
  const email = 'ada@example.com'

  it.each([
    ['oidc', { email, email_verified: true }, email],
    ['oidc', { email, email_verified: 'true' }, email],
    ['oidc', { email, email_verified: 'yes' }, undefined],
    ['oidc', { email, email_verified: 1 }, undefined],
    ['oidc', { email }, undefined],
    ['oidc', { email, xms_edov: true }, undefined],
    ['google', { email, email_verified: false, xms_edov: true }, undefined],
    ['google', { email, email_verified: false, hd: 'example.com' }, undefined],
    ['microsoft', { email }, undefined],
    ['microsoft', { email, email_verified: true }, undefined],
    ['microsoft', { email, xms_edov: true }, email],
    ['microsoft', { email, xms_edov: 1 }, email],
    ['microsoft', { email, xms_edov: '1' }, email],
    ['microsoft', { email, xms_edov: 'true' }, email],
    ['microsoft', { email, xms_edov: false }, undefined],
    ['microsoft', { email, xms_edov: '0' }, undefined],
    ['microsoft', { preferred_username: email, xms_edov: true }, undefined],
    ['oidc', { email: ['ada@example.com'], email_verified: true }, undefined],
    ['oidc', { email: 'ada', email_verified: true }, undefined],
    ['oidc', { email: 'ada@example.com\0', email_verified: true }, undefined],
    ['oidc', { email: '\u212Aim@example.com', email_verified: true }, undefined],
  ])('of %s with %j is %s', (providerId, claims, expected) => {
    expect(readVerifiedEmail(providerId, claims)).toBe(expected)
  })
})

describe('whether a second factor was used', () => {
  it.each([
    [undefined, null],
    [['mfa'], true],
    [['pwd', 'otp'], true],
    [['pwd', 'mfa'], true],
    [['hwk', 'pin'], true],
    [['pwd'], false],
    [['pwd', 'pwd'], false],
    [['pwd', 'pin'], false],
    [['otp', 'sms'], false],
    [['wia', 'geo'], false],
    [[], false],
    ['mfa', true],
  ])('says of amr %j: %s', (amr, expected) => {
    expect(readIsMfa({ amr })).toBe(expected)
  })
})

describe('the algorithms', () => {
  it('are those of the provider that need no shared secret', () => {
    expect(chooseAlgorithms(['none', 'HS256', 'RS256', 'ES256'])).toEqual(['RS256', 'ES256'])
    expect(chooseAlgorithms(['HS256', 'none'])).toEqual([])
    expect(chooseAlgorithms(undefined)).toEqual(['RS256'])
  })
})

describe('the display name', () => {
  it('is what the provider says, as far as it is one', () => {
    expect(readDisplayName({ name: ' Ada\nLovelace ' })).toBe('Ada Lovelace')
    expect(readDisplayName({ name: 'a'.repeat(200) })).toHaveLength(128)
    expect(readDisplayName({ name: '' })).toBeNull()
    expect(readDisplayName({ name: { given: 'Ada' } })).toBeNull()
    expect(readDisplayName({})).toBeNull()
  })
})
