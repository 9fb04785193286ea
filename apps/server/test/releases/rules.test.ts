import { describe, expect, it } from 'vitest'
import { findRegistrationConflict, nextNotes } from '../../src/releases/rules.ts'
import { chooseUploadMethod } from '../../src/transfers/upload-method.ts'

const stored = { hash: 'ab', size_bytes: 5 }
const other = { hash: 'cd', size_bytes: 5 }

describe('registering a release artifact', () => {
  it('is free where nothing is uploaded', () => {
    for (const platformStatus of ['draft', 'active', undefined] as const) {
      expect(findRegistrationConflict({ uploaded: undefined, platformStatus, candidate: other })).toBeUndefined()
    }
  })

  it('may replace other bytes only while the platform is a draft', () => {
    expect(findRegistrationConflict({ uploaded: stored, platformStatus: 'draft', candidate: other })).toBeUndefined()
    expect(findRegistrationConflict({ uploaded: stored, platformStatus: undefined, candidate: other })).toBeUndefined()
    expect(findRegistrationConflict({ uploaded: stored, platformStatus: 'active', candidate: other })).toBe(
      'artifact_exists',
    )
  })

  it('conflicts with the same bytes always', () => {
    const candidate = { hash: 'AB', size_bytes: 5 }
    for (const platformStatus of ['draft', 'active', undefined] as const) {
      expect(findRegistrationConflict({ uploaded: stored, platformStatus, candidate })).toBe('artifact_exists')
    }
  })
})

describe('notes', () => {
  it.each([
    [undefined, undefined],
    [null, undefined],
    ['', null],
    ['text', 'text'],
  ])('%j becomes %j', (given, expected) => {
    expect(nextNotes(given)).toBe(expected)
  })
})

describe('the upload method', () => {
  it.each([
    ['1.6.111', 'resumable'],
    ['1.6.119', 'resumable'],
    ['1.10.0', 'resumable'],
    ['2.0.0', 'resumable'],
    ['1.6.110', 'multipart'],
    ['1.5.200', 'multipart'],
    ['0.9.0+1', 'multipart'],
    ['nonsense', 'multipart'],
    [undefined, 'multipart'],
  ])('for client %s is %s', (version, method) => {
    expect(chooseUploadMethod(version)).toBe(method)
  })
})
