import type { Db } from '../db/connection.ts'
import { listAppVersions } from './queries.ts'

/**
 * Every app there is, with the version of what its devices are offered. All of them are in memory (about 100 bytes each),
 * so that a flood of invented app ids reaches no database.
 */
export type AppVersions = {
  /** undefined: there is no such app. */
  get: (appId: string) => number | undefined
  /** Version 0: the app is gone. Changes may be told in any order, and more than once. */
  mark: (appId: string, version: number) => void
  /** Reads the list again. It reflects every change that was committed before the call. */
  refresh: () => Promise<void>
  count: () => number
  /** Since the list was known to be that of the database; since the start when it was not read yet. */
  ageMs: () => number
}

export function createAppVersions(db: Db): AppVersions {
  let versions = new Map<string, number>()
  let agreedAtMs = performance.now()
  let lastRefresh: Promise<void> = Promise.resolve()
  /** What is told while a list is being read, which may be older. */
  const markedMeanwhile = new Map<string, number>()

  const mark = (appId: string, version: number) => {
    markedMeanwhile.set(appId, version)
    if (version === 0) versions.delete(appId)
    else versions.set(appId, Math.max(version, versions.get(appId) ?? 0))
  }
  const readList = async () => {
    const startedAtMs = performance.now()
    markedMeanwhile.clear()
    const apps = await listAppVersions(db)
    versions = new Map(apps.map((app) => [app.id, app.device_version]))
    for (const [appId, version] of markedMeanwhile) mark(appId, version)
    agreedAtMs = startedAtMs
  }
  return {
    get: (appId) => versions.get(appId),
    mark,
    // One after the other: an older list must not replace a newer one.
    refresh: () => {
      lastRefresh = lastRefresh.catch(() => undefined).then(readList)
      return lastRefresh
    },
    count: () => versions.size,
    ageMs: () => performance.now() - agreedAtMs,
  }
}
