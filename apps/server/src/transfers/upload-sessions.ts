export type UploadSessions = {
  /**
   * Runs the newest request of an upload after the one before it has settled, which is made to end by `abort`. A client
   * whose connection broke sends again while the server still waits for the rest of the first request.
   */
  takeOver: <Result>(key: string, abort: () => void, run: () => Promise<Result>) => Promise<Result>
}

/** The uploads that this process receives. Between processes the conditional updates of `blobs` decide. */
export function createUploadSessions(): UploadSessions {
  const newest = new Map<string, { abort: () => void; settled: Promise<unknown> }>()
  return {
    async takeOver(key, abort, run) {
      const previous = newest.get(key)
      previous?.abort()
      const result = previous === undefined ? run() : previous.settled.then(run)
      const session = { abort, settled: result.catch(() => undefined) }
      newest.set(key, session)
      try {
        return await result
      } finally {
        if (newest.get(key) === session) newest.delete(key)
      }
    },
  }
}
