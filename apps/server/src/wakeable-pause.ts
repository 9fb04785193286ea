/** A pause that can be ended before its time. One waits at a time. */
export type WakeablePause = { wait: (ms: number) => Promise<void>; end: () => void }

export function createWakeablePause(): WakeablePause {
  let end = () => {}
  return {
    wait: (ms) =>
      new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, ms)
        end = () => {
          clearTimeout(timer)
          resolve()
        }
      }),
    end: () => end(),
  }
}
