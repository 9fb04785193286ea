import { setTimeout as sleep } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { type PatchCheckRequest, PatchCheckResponse, routes } from '@godwit/contract'
import { sql } from 'kysely'
import type { Config } from '../config.ts'
import { createDb, createPool, type Db, readStatementLimit } from '../db/connection.ts'
import { buildAppAnswers, findAnswer } from '../devices/app-answers.ts'
import { type DeviceApp, findDeviceApp } from '../devices/queries.ts'
import { chooseOffers, type Place } from '../devices/rules.ts'
import { describe, type Finding } from './finding.ts'

const check = 'devices'
const maxApps = 20
const timeoutMs = 2000
/** A change is live within a second. */
const settleMs = 1500

type Settings = Pick<Config, 'publicUrl' | 'statementTimeoutMs' | 'databaseDirectUrl'>

/** Whether devices are told what the database says: an index that has missed a change answers as before it. */
export async function checkDevices(settings: Settings, connectionString: string): Promise<Finding[]> {
  const pool = createPool(connectionString, 1, readStatementLimit(settings))
  pool.on('error', () => undefined)
  const db = createDb(pool)
  try {
    const appIds = await listPatchedApps(db)
    if (appIds.length === 0) return [{ check, result: 'ok', found: 'no app has a patch for devices yet' }]
    const wrong = await listWrongOnes(settings, db, appIds)
    if (wrong.length > 0) await sleep(settleMs)
    return [judge(await listWrongOnes(settings, db, wrong), appIds)]
  } catch (error) {
    const mend = 'See its log: devices are answered without the database once they have asked for an app.'
    return [{ check, result: 'failure', found: `a check of a device cannot be made: ${describe(error)}`, mend }]
  } finally {
    await db.destroy()
  }
}

function judge(wrong: string[], appIds: string[]): Finding {
  const found = `${appIds.length - wrong.length} of ${appIds.length} apps offer devices what the database says`
  if (wrong.length === 0) return { check, result: 'ok', found }
  return {
    check,
    result: 'failure',
    found: `${found}, not ${wrong.slice(0, 3).join(', ')}`,
    mend: 'An instance has missed changes, see GodwitIndexStale in docs/operations.md; or something keeps answers on the way.',
  }
}

/** Those whose patches are newest. */
async function listPatchedApps(db: Db): Promise<string[]> {
  const { rows } = await sql<{ app_id: string }>`
    select releases.app_id from releases join patches on patches.release_id = releases.id
    where patches.channel_id is not null or patches.is_rolled_back
    group by releases.app_id order by max(patches.id) desc limit ${maxApps}`.execute(db)
  return rows.map(({ app_id }) => app_id)
}

async function listWrongOnes(settings: Settings, db: Db, appIds: string[]): Promise<string[]> {
  const wrong: string[] = []
  for (const appId of appIds) {
    const app = await findDeviceApp(db, { appId })
    const asked = app === undefined ? undefined : chooseCheck(appId, app)
    if (app === undefined || asked === undefined) continue
    const expected = JSON.parse(
      findAnswer(
        buildAppAnswers(app, () => ''),
        asked,
      ).text,
    )
    if (!isDeepStrictEqual(withoutUrl(await askAsDevice(settings, asked)), withoutUrl(expected))) wrong.push(appId)
  }
  return wrong
}

/** Of the release with an offer, or else with a patch that was rolled back. Without a client_id: nobody is counted. */
function chooseCheck(appId: string, { releases }: DeviceApp): PatchCheckRequest | undefined {
  const patched = releases.filter(({ patches }) => patches.length > 0)
  const offers = patched.map(({ version, patches }) => ({ version, offer: [...chooseOffers(patches)][0] }))
  const chosen = offers.findLast(({ offer }) => offer !== undefined) ?? offers.at(-1)
  if (chosen === undefined) return undefined
  const [channel, platform, arch] = chosen.offer?.[0].split('\0') ?? ['stable', 'android', 'aarch64']
  return { app_id: appId, release_version: chosen.version, ...({ channel, platform, arch } as Place) }
}

async function askAsDevice({ publicUrl }: Settings, asked: PatchCheckRequest): Promise<PatchCheckResponse> {
  const { method, path } = routes.checkPatch
  const response = await fetch(publicUrl + path, {
    method,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(asked),
    signal: AbortSignal.timeout(timeoutMs),
  })
  if (response.status !== 200) throw new Error(`${publicUrl}${path} answers ${response.status}`)
  return PatchCheckResponse.parse(await response.json())
}

/** Signed anew each time. */
function withoutUrl({ patch, ...answer }: PatchCheckResponse) {
  return { ...answer, patch: patch === undefined || patch === null ? undefined : { ...patch, download_url: '' } }
}
