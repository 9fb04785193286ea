import { LRUCache } from 'lru-cache'
import type { Logger } from 'pino'
import { AppError } from '../errors.ts'
import type { AppAnswers } from './app-answers.ts'

/** A check waits this long for an app's newer state, and is then answered from the last known one. */
const reloadPatienceMs = 1000
/** The same where nothing is known yet. */
const firstLoadPatienceMs = 5000
/** After a load failed, the app's checks do without another attempt for this long. */
const retryLoadMs = 1000
const maxSizeBytes = 256 * 1024 ** 2
/**
 * A check may join a load that began before the change which it must see, and then needs the next one. More than these
 * would mean that the load fails, or that the database is behind what we were told.
 */
const maxLoadsPerCheck = 3

/** What is loaded of the apps. Bounded in size; the app that was asked for least recently leaves first. */
export type AnswersCache = {
  /**
   * At least as new as `version`; failing that, the last that is known; undefined when there is no such app. A promise
   * only while the app must be loaded, by one load for all who wait.
   */
  find: (appId: string, version: number) => AppAnswers | Promise<AppAnswers | undefined>
  /** Told when the app has changed. */
  markChanged: (appId: string, isGone: boolean) => void
  measure: () => { loadedApps: number; sizeBytes: number; loads: number }
}

type Load = { answers: Promise<AppAnswers | undefined>; hasFailed: boolean }

export function createAnswersCache(options: {
  load: (appId: string) => Promise<AppAnswers | undefined>
  log: Logger
}): AnswersCache {
  const { load, log } = options
  const loaded = new LRUCache<string, AppAnswers>({
    maxSize: maxSizeBytes,
    sizeCalculation: (answers) => answers.sizeBytes,
  })
  const loads = new Map<string, Load>()
  let loadCount = 0

  const startLoad = (appId: string): Load => {
    loadCount += 1
    const last = loaded.get(appId)
    const loading = load(appId).then((answers) => {
      if (answers !== undefined) loaded.set(appId, answers)
      return answers
    })
    const answers = within(loading, last === undefined ? firstLoadPatienceMs : reloadPatienceMs).catch(() => {
      if (last === undefined) throw new AppError('unavailable', undefined, { retryAfterSeconds: 5 })
      return last
    })
    const started: Load = { answers, hasFailed: false }
    const forget = () => {
      if (loads.get(appId) === started) loads.delete(appId)
    }
    loads.set(appId, started)
    loading.then(forget, (error: unknown) => {
      log.warn({ err: error, appId }, 'cannot load what devices of the app are offered')
      started.hasFailed = true
      setTimeout(forget, retryLoadMs).unref()
    })
    return started
  }
  const findAfterLoad = async (appId: string, version: number): Promise<AppAnswers | undefined> => {
    for (let attempt = 1; ; attempt += 1) {
      const answers = await (loads.get(appId) ?? startLoad(appId)).answers
      if (answers === undefined || answers.version >= version || attempt === maxLoadsPerCheck) return answers
    }
  }
  return {
    find: (appId, version) => {
      const last = loaded.get(appId)
      return last !== undefined && last.version >= version ? last : findAfterLoad(appId, version)
    },
    markChanged: (appId, isGone) => {
      if (isGone) loaded.delete(appId)
      if (loads.get(appId)?.hasFailed) loads.delete(appId)
    },
    measure: () => ({ loadedApps: loaded.size, sizeBytes: loaded.calculatedSize, loads: loadCount }),
  }
}

/** Rejects when the promise takes longer. What it stands for goes on. */
async function within<T>(promise: Promise<T>, limitMs: number): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new Error(`took longer than ${limitMs} ms`)), limitMs)
  return await Promise.race([promise, late]).finally(() => clearTimeout(timer))
}
