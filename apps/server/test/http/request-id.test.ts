import { describe, expect, it } from 'vitest'
import { chooseRequestId } from '../../src/http/request-id.ts'

describe('a request id', () => {
  it('is made in the form of a UUID, each one once', () => {
    const ids = Array.from({ length: 10_000 }, () => chooseRequestId({ headers: {} }))
    expect(new Set(ids).size).toBe(ids.length)
    for (const id of ids) expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/)
  })
})
