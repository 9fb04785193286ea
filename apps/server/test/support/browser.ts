/** What a browser does with pages: keeps cookies, sends forms as the page has them, follows nothing by itself. */
export type Browser = {
  cookies: Map<string, string>
  get: (path: string, headers?: Record<string, string>) => Promise<PageAnswer>
  /** Sends fields as they are. */
  post: (path: string, fields: Record<string, string>, headers?: Record<string, string>) => Promise<PageAnswer>
  /** Opens a page and sends its form with this action: hidden fields as they are there, the others as given. */
  submit: (
    path: string,
    action: string,
    fields?: Record<string, string>,
    headers?: Record<string, string>,
  ) => Promise<PageAnswer>
}

export type PageAnswer = {
  status: number
  headers: Headers
  /** Where a redirect goes. */
  location: string | undefined
  html: string
  /** What the page says went wrong. */
  error: string | undefined
}

export function createBrowser(baseUrl: string): Browser {
  const cookies = new Map<string, string>()

  const send = async (path: string, init: RequestInit, headers: Record<string, string>): Promise<PageAnswer> => {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const response = await fetch(baseUrl + path, {
      ...init,
      redirect: 'manual',
      headers: { 'user-agent': 'Test Browser', ...(cookie === '' ? {} : { cookie }), ...headers },
    })
    for (const line of response.headers.getSetCookie()) keepCookie(cookies, line)
    const html = await response.text()
    return {
      status: response.status,
      headers: response.headers,
      location: response.headers.get('location') ?? undefined,
      html,
      error: decode(/<p class="error"[^>]*>([^<]*)</.exec(html)?.[1]),
    }
  }
  const get: Browser['get'] = (path, headers = {}) => send(path, {}, headers)
  const post: Browser['post'] = (path, fields, headers = {}) =>
    send(path, { method: 'POST', body: new URLSearchParams(fields) }, { origin: baseUrl, ...headers })

  return {
    cookies,
    get,
    post,
    async submit(path, action, fields = {}, headers = {}) {
      const page = await get(path)
      return await post(action, { ...readHiddenFields(page.html, action), ...fields }, headers)
    },
  }
}

/** The hidden fields of the form with this action. Throws when the page has no such form. */
export function readHiddenFields(html: string, action: string): Record<string, string> {
  const form = html.split('<form ').find((part) => part.includes(`action="${action}"`))
  if (form === undefined) throw new Error(`the page has no form to ${action}: ${html}`)
  const inputs =
    form.split('</form>', 1)[0]?.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)"(?: \/)?>/g) ?? []
  return Object.fromEntries([...inputs].map(([, name = '', value = '']) => [name, decode(value) ?? '']))
}

function keepCookie(cookies: Map<string, string>, line: string): void {
  const [pair = '', ...attributes] = line.split('; ')
  const name = pair.slice(0, pair.indexOf('='))
  const expires = attributes.find((attribute) => /^expires=/i.test(attribute))?.slice('expires='.length)
  if (expires !== undefined && Date.parse(expires) < 1000) cookies.delete(name)
  else cookies.set(name, pair.slice(name.length + 1))
}

function decode(text: string | undefined): string | undefined {
  return text?.replaceAll(/&#(\d+);/g, (_entity, code: string) => String.fromCharCode(Number(code)))
}
