/** Requests that one blob makes of a bucket at the same time. */
const concurrency = 8

/** Some at a time, in order. The first that fails ends it, once those that run have ended. */
export async function mapConcurrently<Item, Result>(
  items: readonly Item[],
  run: (item: Item, index: number) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = []
  const rest = items.entries()
  let hasFailed = false
  const work = async () => {
    for (const [index, item] of rest) {
      if (hasFailed) return
      try {
        results[index] = await run(item, index)
      } catch (error) {
        hasFailed = true
        throw error
      }
    }
  }
  const outcomes = await Promise.allSettled(Array.from({ length: concurrency }, work))
  const failed = outcomes.find((outcome) => outcome.status === 'rejected')
  if (failed !== undefined) throw failed.reason
  return results
}
