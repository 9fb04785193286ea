import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createDeviceRateLimiter } from '../../src/devices/device-rate-limit.ts'

beforeEach(() => {
  vi.useFakeTimers({ now: 0 })
})
afterEach(() => {
  vi.useRealTimers()
})

describe('the rate limit of devices', () => {
  it('refuses a device that is over it until the minute ends, and says how long that is', () => {
    const limiter = createDeviceRateLimiter(2)
    expect([limiter.take('app', 'one'), limiter.take('app', 'one')]).toEqual([undefined, undefined])
    vi.advanceTimersByTime(20_000)
    expect(limiter.take('app', 'one')).toBe(40)
    vi.advanceTimersByTime(40_000)
    expect(limiter.take('app', 'one')).toBeUndefined()
  })

  it('hardly ever refuses a device for what others do', () => {
    const limiter = createDeviceRateLimiter(1)
    const refused = Array.from({ length: 1000 }, (_, device) => limiter.take('app', `device-${device}`))
    // Of 1,000 devices in 262,144 cells about 2 share one.
    expect(refused.filter((seconds) => seconds !== undefined).length).toBeLessThan(15)
  })

  it('does not take a device of one app for that of another, nor one name for another', () => {
    const limiter = createDeviceRateLimiter(1)
    limiter.take('ab', 'c')
    expect([limiter.take('a', 'bc'), limiter.take('c', 'ab')]).toEqual([undefined, undefined])
  })

  it('can be off', () => {
    const limiter = createDeviceRateLimiter(undefined)
    for (let request = 0; request < 100; request += 1) expect(limiter.take('app', 'one')).toBeUndefined()
  })
})
