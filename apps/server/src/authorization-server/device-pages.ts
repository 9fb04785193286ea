import type { IncomingMessage } from 'node:http'
import { html } from 'ghtml'
import type { errors, KoaContextWithOIDC } from 'oidc-provider'
import { renderField, renderPage } from '../sign-in/page.ts'

const typedCodes = new WeakMap<IncomingMessage, string>()

/**
 * A link that carries the code (RFC 8628, 3.3.1) would be turned into a form that only a script sends. It is taken out of the
 * URL and shown in the form instead, where the person looks at it anyway before going on.
 */
export function rememberTypedCode(request: IncomingMessage): void {
  const url = new URL(request.url ?? '/', 'http://localhost')
  const code = url.searchParams.get('user_code')
  if (request.method !== 'GET' || url.pathname !== '/device' || code === null) return
  typedCodes.set(request, code)
  request.url = url.pathname
}

/** The pages of the device flow (RFC 8628), in place of the library's. */
export const deviceFlowPages = {
  async userCodeInputSource(ctx: KoaContextWithOIDC, _form: string, _out?: unknown, error?: Error) {
    const wasWrong = error !== undefined && ('userCode' in error || error.name === 'NoCodeError')
    const problem = wasWrong ? 'That code is wrong or has expired.' : 'That did not work.'
    ctx.body = renderPage({
      title: 'Connect a device',
      ...(error === undefined ? {} : { error: error.name === 'AbortedError' ? 'The sign-in was cancelled.' : problem }),
      body: html`
        <p>Enter the code that your terminal or device shows.</p>
        <form method="post" action="${ctx.oidc.urlFor('code_verification')}">
          <input type="hidden" name="xsrf" value="${readXsrf(ctx)}" />
          !${renderField({ name: 'user_code', label: 'Code', autocomplete: 'off', value: typedCodes.get(ctx.req) ?? '', isFocused: true })}
          <button>Continue</button>
        </form>
      `,
    })
  },

  async userCodeConfirmSource(
    ctx: KoaContextWithOIDC,
    _form: string,
    client: { clientName?: string | undefined; clientId: string },
    _deviceInfo: unknown,
    userCode: string,
  ) {
    ctx.body = renderPage({
      title: 'Is this your device?',
      body: html`
        <p><strong>${client.clientName ?? client.clientId}</strong> asks to be signed in as you. It should show this code:</p>
        <p class="code">${userCode}</p>
        <p>Go on only if you have just started this yourself.</p>
        <form method="post" action="${ctx.oidc.urlFor('code_verification')}">
          <input type="hidden" name="xsrf" value="${readXsrf(ctx)}" />
          <input type="hidden" name="user_code" value="${userCode}" />
          <input type="hidden" name="confirm" value="yes" />
          <button>Continue</button>
          <button name="abort" value="yes" class="quiet">Cancel</button>
        </form>
      `,
    })
  },

  async successSource(ctx: KoaContextWithOIDC) {
    ctx.body = renderPage({
      title: 'Signed in',
      body: html`<p>You can close this page and go back to your device.</p>`,
    })
  },
}

/** Errors that cannot be brought back to the client, such as an unknown redirect URI. */
export async function renderProviderError(
  ctx: KoaContextWithOIDC,
  out: { error: string; error_description?: string | undefined },
  _error: errors.OIDCProviderError | Error,
): Promise<void> {
  ctx.type = 'html'
  ctx.body = renderPage({
    title: 'Sign-in is not possible',
    body: html`<p>${out.error_description ?? out.error}</p>`,
  })
}

/** To a form whose session is unknown here, or that came from elsewhere. */
export function renderLostForm(): string {
  return renderPage({
    title: 'Connect a device',
    error: 'This form is no longer valid.',
    body: html`<p><a href="/device">Start again</a></p>`,
  })
}

export function renderFault(): string {
  return renderPage({ title: 'Something went wrong here', body: html`<p>Please try again in a moment.</p>` })
}

function readXsrf(ctx: KoaContextWithOIDC): string {
  const state = ctx.oidc.session?.state as { secret?: string } | undefined
  return state?.secret ?? ''
}
