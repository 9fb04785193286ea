import { setTimeout as sleep } from 'node:timers/promises'
import type { PatchCheckResponse } from '@godwit/contract'
import { arch } from './devices.ts'
import { createAsker } from './http.ts'
import type { Publisher } from './publisher.ts'
import type { World } from './world.ts'

const limitMs = 20_000
const askEveryMs = 2

/**
 * How long after a patch was promoted, or rolled back, was acknowledged devices of this instance are told so. Zero when
 * they were told before. It is asked for as often as it can be answered, so the figure has the length of one check in it.
 */
export async function measurePromotes(
  publisher: Publisher,
  { app, release }: World['apps'][number],
  baseUrl: string,
  count: number,
): Promise<number[]> {
  const asker = createAsker(1)
  const { appId: app_id, version: release_version } = release
  const check = JSON.stringify({ app_id, release_version, channel: 'stable', platform: 'android', arch })
  const readOffer = async () => {
    const { body } = await asker.ask('POST', `${baseUrl}/api/v1/patches/check`, check)
    return (JSON.parse(body.toString('utf8')) as PatchCheckResponse).patch?.number
  }
  const times: number[] = []
  const patch = await publisher.publishPatch(app, release)
  for (let turn = 0; turn < count; turn += 1) {
    const isAway = turn % 2 === 0
    await untilSo(async () => ((await readOffer()) === patch.number) === isAway)
    await publisher.promote(app, release, patch, isAway ? 'beta' : 'stable')
    const acknowledgedMs = performance.now()
    const wanted = isAway ? undefined : patch.number
    await untilSo(async () => ((await readOffer()) === patch.number) === (wanted !== undefined))
    times.push(performance.now() - acknowledgedMs)
  }
  asker.close()
  return times
}

async function untilSo(isSo: () => Promise<boolean>): Promise<void> {
  const endsMs = performance.now() + limitMs
  while (!(await isSo())) {
    if (performance.now() > endsMs) throw new Error(`not visible after ${limitMs / 1000} s`)
    await sleep(askEveryMs)
  }
}
