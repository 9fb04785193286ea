import type { IncomingMessage } from 'node:http'
import type { interactionPolicy } from 'oidc-provider'
import type { BrowserSession } from '../sign-in/browser-session.ts'

/** Our browser session behind each request that the library handles: it knows only the raw request. */
export type BrowserSessions = WeakMap<IncomingMessage, BrowserSession | undefined>

/**
 * The library's own rules, and one of ours: its memory of who signed in counts only while our browser session lasts and
 * is of the same person. Signing out there ends both.
 */
export function createInteractionPolicy(
  browserSessions: BrowserSessions,
  policy: typeof interactionPolicy,
): interactionPolicy.DefaultPolicy {
  const prompts = policy.base()
  prompts.get('login')?.checks.add(
    new policy.Check('no_browser_session', 'End-User authentication is required', (ctx) => {
      const { accountId } = ctx.oidc.session ?? {}
      const session = browserSessions.get(ctx.req)
      const isSame = session !== undefined && String(session.user_id) === accountId
      return isSame ? policy.Check.NO_NEED_TO_PROMPT : policy.Check.REQUEST_PROMPT
    }),
  )
  return prompts
}
