const fallback = '/account'

/** Where to go after sign-in: a path of this server, or the account page when what was asked for is anything else. */
export function chooseReturnTo(publicUrl: string, asked: unknown): string {
  if (typeof asked !== 'string' || asked.length > 2048) return fallback
  // Browsers read a backslash as a slash and skip tabs and line ends, so that "/\evil" and "/\t/evil" leave the host.
  if (!asked.startsWith('/') || asked.startsWith('//') || /[\\\p{Cc}]/u.test(asked)) return fallback
  const { origin } = new URL(publicUrl)
  const url = URL.canParse(asked, origin) ? new URL(asked, origin) : undefined
  if (url === undefined || url.origin !== origin || url.pathname.startsWith('//')) return fallback
  return url.pathname + url.search
}
