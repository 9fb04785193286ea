import { UnanalyzableError } from './app-facts.ts'

/** What `read` returns; undefined when the bytes break the rules of their format, where that fails nothing. */
export function readOptional<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch (error) {
    return ignoreUnanalyzable(error)
  }
}

/** The same of what is read from the archive. */
export async function loadOptional<T>(load: () => Promise<T>): Promise<T | undefined> {
  try {
    return await load()
  } catch (error) {
    return ignoreUnanalyzable(error)
  }
}

function ignoreUnanalyzable(error: unknown): undefined {
  if (!(error instanceof UnanalyzableError)) throw error
}
