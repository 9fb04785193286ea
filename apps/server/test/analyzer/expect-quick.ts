import { expect } from 'vitest'

/** Runs it, and expects it to take less than a second of this thread's time, however busy the machine is. */
export async function expectQuick<T>(run: () => T | Promise<T>): Promise<T> {
  const start = process.threadCpuUsage()
  const result = await run()
  expect(process.threadCpuUsage(start).user / 1000).toBeLessThan(1000)
  return result
}
