/** The channel that every app has from the start and that updaters ask when their app names none. */
export const defaultChannelName = 'stable'

export function canDeleteChannel(channel: { name: string }): boolean {
  return channel.name !== defaultChannelName
}
