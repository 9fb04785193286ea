import { violatesUnique } from '../db/errors.ts'
import type { Deps } from '../deps.ts'
import { changeApp } from '../devices/app-changes.ts'
import { AppError } from '../errors.ts'
import { deleteChannel as deleteChannelRow, findChannel, insertChannel } from './queries.ts'
import { canDeleteChannel } from './rules.ts'

export async function createChannel(deps: Deps, input: { appId: string; name: string }) {
  try {
    return await insertChannel(deps.db, input)
  } catch (error) {
    if (violatesUnique(error, 'channels_name_key')) throw new AppError('channel_exists', 'channel: is taken')
    throw error
  }
}

/** The patches of the channel are then on none. */
export async function deleteChannel(deps: Deps, input: { appId: string; channelId: number }): Promise<void> {
  await changeApp(deps, input.appId, async (trx) => {
    const channel = await findChannel(trx, input)
    if (channel === undefined) throw new AppError('not_found')
    if (!canDeleteChannel(channel)) throw new AppError('channel_is_default')
    await deleteChannelRow(trx, input)
  })
}
