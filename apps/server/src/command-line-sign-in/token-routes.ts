import formbody from '@fastify/formbody'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { Deps } from '../deps.ts'
import { AppError } from '../errors.ts'
import { bodyTimeoutMs, limitBodyTime } from '../http/bodies.ts'
import { toAppError } from '../http/error-handler.ts'
import { refuseOverLimit } from '../http/rate-limit.ts'
import { readSource } from '../http/request-source.ts'
import { OAuthError } from '../oauth-error.ts'
import { readOrigin } from '../sign-in/browser-session.ts'
import { exchangeToken } from '../trust-rules/exchange-token.ts'
import { exchangeCode, refreshTokens, signOutCommandLine } from './actions.ts'

const maxFormBytes = 64 * 1024

const field = z.string().min(1).max(16_384)
const tokenExchange = 'urn:ietf:params:oauth:grant-type:token-exchange'

const TokenRequest = z.discriminatedUnion('grant_type', [
  z.object({ grant_type: z.literal('authorization_code'), code: field, redirect_uri: field.optional() }),
  z.object({ grant_type: z.literal('refresh_token'), refresh_token: field }),
  z.object({
    grant_type: z.literal(tokenExchange),
    subject_token: field,
    subject_token_type: field,
    audience: field.optional(),
    resource: field.optional(),
    service_account_id: field.optional(),
  }),
])

/**
 * `POST /token` for the two kinds of caller that have no client id: the public command line client (RFC 6749, 4.1.3 and 6)
 * and CI jobs (RFC 8693). `POST /api/logout` ends what the first one got.
 */
export async function registerTokenRoutes(app: FastifyInstance, deps: Deps): Promise<void> {
  limitBodyTime(app, bodyTimeoutMs)
  await app.register(formbody, { bodyLimit: maxFormBytes })
  app.setErrorHandler(sendOAuthError)
  app.addHook('onRequest', async (_request, reply) => {
    reply.header('cache-control', 'no-store')
  })

  app.post('/token', async (request) => {
    const parsed = TokenRequest.safeParse(request.body)
    if (!parsed.success) throw describeRefusal(parsed.error)
    try {
      return await answer(deps, parsed.data, request)
    } catch (error) {
      if (error instanceof OAuthError) refuseOverLimit(deps.rateLimiter.take(`failures:${request.ip}`))
      throw error
    }
  })

  app.post('/api/logout', async (request, reply) => {
    const refreshToken = /^Bearer +(\S+)$/i.exec(request.headers.authorization ?? '')?.[1]
    if (refreshToken === undefined) throw new AppError('unauthenticated')
    await signOutCommandLine(deps, { refreshToken })
    return reply.code(204).send()
  })
}

async function answer(deps: Deps, input: z.output<typeof TokenRequest>, request: FastifyRequest): Promise<object> {
  const origin = readOrigin(request)
  switch (input.grant_type) {
    case 'authorization_code':
      return await exchangeCode(deps, { code: input.code, redirectUri: input.redirect_uri, ...origin })
    case 'refresh_token':
      return await refreshTokens(deps, { refreshToken: input.refresh_token, address: request.ip })
    case tokenExchange:
      return await exchangeToken(deps, {
        subjectToken: input.subject_token,
        subjectTokenType: input.subject_token_type,
        audience: input.audience,
        resource: input.resource,
        serviceAccountId: input.service_account_id,
        source: readSource(request),
      })
  }
}

function describeRefusal(error: z.ZodError): OAuthError {
  const [issue] = error.issues
  const name = issue?.path.map(String).join('.') ?? ''
  if (name === 'grant_type') return new OAuthError('unsupported_grant_type', 'grant_type: is missing or not supported')
  return new OAuthError('invalid_request', `${name || 'body'}: ${issue?.message}`)
}

/** OAuth clients read `error`, the command line client reads the status alone. */
function sendOAuthError(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  if (error instanceof OAuthError) return reply.code(error.status).send(error.toResponse())
  const refusal = toAppError(error, request)
  if (refusal.retryAfterSeconds !== undefined) reply.header('retry-after', refusal.retryAfterSeconds)
  const codes = { 400: 'invalid_request', 401: 'invalid_client', 429: 'slow_down', 503: 'temporarily_unavailable' }
  const code =
    codes[refusal.status as keyof typeof codes] ?? (refusal.status < 500 ? 'invalid_request' : 'server_error')
  const { message, details } = refusal.toResponse(request.id)
  return reply.code(refusal.status).send({ error: code, error_description: details ?? message })
}
