import cookie from '@fastify/cookie'
import formBody from '@fastify/formbody'
import helmet from '@fastify/helmet'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { html } from 'ghtml'
import type { Deps } from '../deps.ts'
import { bodyTimeoutMs, limitBodyTime } from '../http/bodies.ts'
import { toAppError } from '../http/error-handler.ts'
import { refuseForeignOrigin } from './csrf.ts'
import { type Page, renderPage, stylePath } from './page.ts'
import { style } from './style.ts'

const maxFormBytes = 64 * 1024

/**
 * Makes a scope one of HTML pages that need no script: forms, cookies, headers that let a browser do nothing else, errors
 * as pages. A form is refused when a browser says that another site sent it; its token is checked by each handler.
 */
export async function preparePages(app: FastifyInstance, deps: Deps): Promise<void> {
  // Of the bodies only forms are read: a form is the only thing that a page of ours sends.
  app.removeAllContentTypeParsers()
  limitBodyTime(app, bodyTimeoutMs)
  await app.register(formBody, { bodyLimit: maxFormBytes })
  await app.register(cookie)
  await app.register(helmet, {
    contentSecurityPolicy: {
      useDefaults: false,
      directives: {
        defaultSrc: ["'none'"],
        styleSrc: ["'self'"],
        imgSrc: ["'self'", 'data:'],
        formAction: ["'self'"],
        frameAncestors: ["'none'"],
        baseUri: ["'none'"],
      },
    },
    // Not no-referrer: browsers then send `Origin: null` with our own forms (Fetch, "append a request Origin header").
    referrerPolicy: { policy: 'same-origin' },
    // It would hold everything else on this host to https too: that is for the operator's proxy to say.
    strictTransportSecurity: false,
    xFrameOptions: { action: 'deny' },
  })
  app.addHook('onRequest', async (request, reply) => {
    reply.header('cache-control', 'no-store')
    refuseForeignOrigin(deps, request)
  })
  app.setErrorHandler(sendErrorPage)
  app.get(stylePath, async (_request, reply) =>
    reply.header('cache-control', 'public, max-age=3600').type('text/css; charset=utf-8').send(style),
  )
}

export function sendPage(reply: FastifyReply, page: Page & { status?: number }): FastifyReply {
  return reply
    .code(page.status ?? 200)
    .type('text/html; charset=utf-8')
    .send(renderPage(page))
}

/** Browsers hold a form to `form-action` also in the redirect that answers it: lets this page's forms end at `origin`. */
export function allowFormTarget(reply: FastifyReply, origin: string): void {
  const header = 'content-security-policy'
  const policy = String(reply.getHeader(header) ?? reply.raw.getHeader(header) ?? '')
  reply.header(header, policy.replace("form-action 'self'", `form-action 'self' ${new URL(origin).origin}`))
}

function sendErrorPage(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const refusal = toAppError(error, request)
  const { retryAfterSeconds, status } = refusal
  if (status === 429) request.log.warn({ tried: 'more often than allowed', address: request.ip }, 'refused a form')
  if (retryAfterSeconds !== undefined) reply.header('retry-after', retryAfterSeconds)
  const { details } = refusal.toResponse(request.id)
  return sendPage(reply, {
    status,
    title: titles[status] ?? 'This did not work',
    error: details ?? refusal.message,
    body: html`<p><a href="/account">Go to your account</a></p>`,
  })
}

const titles: Record<number, string> = {
  400: 'Something is missing',
  403: 'This is not allowed',
  404: 'There is nothing here',
  429: 'Too many tries',
  500: 'Something went wrong here',
  503: 'Please try again in a moment',
}
