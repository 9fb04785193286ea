import { describe, expect, it } from 'vitest'
import { FreeformMetadata, text, UpdateReleaseRequest } from '../src/index.ts'

describe('text', () => {
  it('takes what PostgreSQL can store', () => {
    expect(text({ max: 20 }).safeParse('Zwölf Boxkämpfer 🥊').success).toBe(true)
  })

  it.each(['', 'a\0b', '\ud800', 'x'.repeat(21)])('refuses %j', (value) => {
    expect(text({ max: 20 }).safeParse(value).success).toBe(false)
  })
})

describe('free metadata', () => {
  it('takes a JSON object', () => {
    expect(FreeformMetadata.safeParse({ a: [1, { b: null }], c: 'd' }).success).toBe(true)
  })

  it('refuses NUL in keys and values', () => {
    expect(FreeformMetadata.safeParse({ a: ['\0'] }).success).toBe(false)
    expect(FreeformMetadata.safeParse({ '\0': 1 }).success).toBe(false)
  })

  it('refuses what is nested without end, without overflowing the stack', () => {
    const deep = JSON.parse(`{"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}`)
    expect(FreeformMetadata.safeParse(deep).success).toBe(false)
  })
})

describe('UpdateReleaseRequest', () => {
  it('takes the four keys of the public client, null when unused', () => {
    const body = { status: null, platform: null, metadata: null, notes: 'x' }
    expect(UpdateReleaseRequest.parse(body)).toEqual(body)
  })

  it('refuses a status without its platform, naming the field', () => {
    const { error } = UpdateReleaseRequest.safeParse({ status: 'active' })
    expect(error?.issues[0]?.path).toEqual(['platform'])
  })
})
