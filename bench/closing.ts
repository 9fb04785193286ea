const closers: (() => Promise<unknown>)[] = []
let closing: Promise<void> | undefined

/** Has `close` called at the end, the last one first: servers are processes of their own, and would outlive us. */
export function atTheEnd(close: () => Promise<unknown>): void {
  closers.push(close)
}

/** Runs `work`, and closes what it opened, also after a failure or a signal. */
export async function runAndClose(work: () => Promise<void>): Promise<void> {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => closeAll().then(() => process.exit(1)))
  }
  try {
    await work()
  } finally {
    await closeAll()
  }
}

/** Closes what was opened until now, where one run opens something again and again. */
export async function closeOpened(): Promise<void> {
  for (const close of closers.splice(0).toReversed()) await close().catch(() => undefined)
}

/** Also whoever comes second waits for it: a signal fails what is running, and its failure must not end us half-closed. */
function closeAll(): Promise<void> {
  closing ??= closeOpened()
  return closing
}
