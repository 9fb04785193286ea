import { ServerResponse } from 'node:http'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createRefusalBrake } from '../../src/http/refusal-brake.ts'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'performance'] })
})
afterEach(() => {
  vi.useRealTimers()
})

/** Refuses so often at once. */
function refuse(brake: ReturnType<typeof createRefusalBrake>, times: number) {
  const responses = Array.from({ length: times }, () => new ServerResponse({ method: 'POST' } as never))
  const sent = new Set<ServerResponse>()
  for (const response of responses) brake(response, () => sent.add(response))
  return { sent, closing: () => responses.filter(({ shouldKeepAlive }) => !shouldKeepAlive).length }
}

describe('refusals of callers that ask again and again', () => {
  it('leave at once when they are few, and up to a second and a half late when they are many', () => {
    const brake = createRefusalBrake()
    const { sent } = refuse(brake, 120)
    expect(sent.size).toBe(20)
    vi.advanceTimersByTime(499)
    expect(sent.size).toBe(20)
    vi.advanceTimersByTime(500)
    expect(sent.size).toSatisfy((size: number) => size > 20 && size < 120)
    vi.advanceTimersByTime(501)
    expect(sent.size).toBe(120)
  })

  it('leave at once again as time goes on: fifty a second', () => {
    const brake = createRefusalBrake()
    refuse(brake, 20)
    vi.advanceTimersByTime(200)
    expect(refuse(brake, 20).sent.size).toBe(10)
    vi.advanceTimersByTime(60_000)
    expect(refuse(brake, 100).sent.size).toBe(20)
  })

  it('are not kept by the ten thousand: those that are too many close their connection', () => {
    const brake = createRefusalBrake()
    const { sent, closing } = refuse(brake, 10_000)
    expect(sent.size).toBe(9000)
    expect(closing()).toBe(8980)
    vi.advanceTimersByTime(1500)
    expect(sent.size).toBe(10_000)
    expect(closing()).toBe(8980)
  })
})
