import { recordAppEvent } from '../audit/record-event.ts'
import { violatesUnique } from '../db/errors.ts'
import type { Deps } from '../deps.ts'
import { changeApp } from '../devices/app-changes.ts'
import { AppError } from '../errors.ts'
import type { Actor } from '../http/actor.ts'
import { deleteChannel as deleteChannelRow, findChannel, insertChannel } from './queries.ts'
import { canDeleteChannel } from './rules.ts'

export async function createChannel(deps: Deps, actor: Actor, input: { appId: string; name: string }) {
  try {
    return await deps.db.transaction().execute(async (trx) => {
      const channel = await insertChannel(trx, input)
      await recordAppEvent(deps, trx, actor, { operation: 'channel.create', ...describeChannel(channel) })
      return channel
    })
  } catch (error) {
    if (violatesUnique(error, 'channels_name_key')) throw new AppError('channel_exists', 'channel: is taken')
    throw error
  }
}

/** The patches of the channel are then on none. */
export async function deleteChannel(
  deps: Deps,
  actor: Actor,
  input: { appId: string; channelId: number },
): Promise<void> {
  await changeApp(deps, input.appId, async (trx) => {
    const channel = await findChannel(trx, input)
    if (channel === undefined) throw new AppError('not_found')
    if (!canDeleteChannel(channel)) throw new AppError('channel_is_default')
    await deleteChannelRow(trx, input)
    await recordAppEvent(deps, trx, actor, { operation: 'channel.delete', ...describeChannel(channel) })
  })
}

function describeChannel(channel: { id: number; app_id: string; name: string }) {
  const { id, app_id: appId, name } = channel
  const resources = [
    { type: 'channel' as const, uid: id },
    { type: 'app' as const, uid: appId },
  ]
  return { appId, resources, details: { channel: name } }
}
