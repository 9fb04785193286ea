import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { CreatePatchEventRequest, PatchCheckRequest, routes } from '@godwit/contract'
import type { FastifyBaseLogger } from 'fastify'
import type { Deps } from '../deps.ts'
import { bodyTimeoutMs, maxBodyBytes, readJson } from '../http/bodies.ts'
import { toAppError } from '../http/error-handler.ts'
import { refuseOverLimit } from '../http/rate-limit.ts'
import { chooseRequestId } from '../http/request-id.ts'
import { validate } from '../http/validation.ts'
import { createDeviceRateLimiter, type DeviceRateLimiter } from './device-rate-limit.ts'
import { readBody } from './read-body.ts'

const json = 'application/json; charset=utf-8'

type Door = Deps & { deviceLimiter: DeviceRateLimiter }

/** The answer as JSON in ASCII, or undefined for none. */
type Operation = (door: Door, body: unknown) => string | undefined | Promise<string | undefined>

const operations = new Map<string, Operation>([
  [routes.checkPatch.path, checkPatch],
  [routes.createPatchEvent.path, createPatchEvent],
])

/**
 * Answers devices before the control door's router sees them, everything else is for `behind`. See docs/architecture for
 * what that saves.
 */
export function createDeviceDoor(deps: Deps, behind: RequestListener): RequestListener {
  const door: Door = { ...deps, deviceLimiter: createDeviceRateLimiter(deps.config.requestsPerMinute) }
  return (request, response) => {
    const operation = request.method === 'POST' ? findOperation(request.url ?? '') : undefined
    if (operation === undefined) behind(request, response)
    else void answer(door, operation, request, response)
  }
}

/** A base_url with a trailing slash makes devices ask for `//api/v1/patches/check`. */
function findOperation(url: string): Operation | undefined {
  return operations.get(url) ?? operations.get(url.replace(/\?.*$/s, '').replaceAll(/\/{2,}/g, '/'))
}

async function answer(deps: Door, operation: Operation, request: IncomingMessage, response: ServerResponse) {
  const requestId = chooseRequestId(request)
  try {
    const body = await readBody(request, { maxBytes: maxBodyBytes, timeoutMs: bodyTimeoutMs })
    const result = operation(deps, readJson(body).value)
    sendBody(response, requestId, result instanceof Promise ? await result : result)
  } catch (error) {
    sendError(deps, response, requestId, error)
  }
}

function checkPatch(deps: Door, body: unknown): string | Promise<string> {
  const check = validate(PatchCheckRequest, body)
  limitDevice(deps, check.app_id, check.client_id)
  return deps.deviceIndex.answer(check)
}

async function createPatchEvent(deps: Door, body: unknown): Promise<undefined> {
  const { event } = validate(CreatePatchEventRequest, body)
  limitDevice(deps, event.app_id, event.client_id)
  if (deps.deviceIndex.hasApp(event.app_id)) await deps.deviceEvents.store(event)
}

/** Never by address: a whole operator's network can stand behind one. */
function limitDevice(deps: Door, appId: string, clientId: string | null | undefined): void {
  if (clientId !== undefined && clientId !== null) refuseOverLimit(deps.deviceLimiter.take(appId, clientId))
}

function sendBody(response: ServerResponse, requestId: string, body: string | undefined): void {
  if (body === undefined) {
    response.writeHead(204, { 'X-Request-ID': requestId }).end()
    return
  }
  response
    .writeHead(200, { 'Content-Type': json, 'Content-Length': body.length, 'X-Request-ID': requestId })
    .end(body, 'latin1')
}

function sendError(deps: Deps, response: ServerResponse, requestId: string, error: unknown): void {
  const log = deps.log.child({ reqId: requestId }) as FastifyBaseLogger
  const refusal = toAppError(error, { log })
  const answer = refusal.toResponse()
  if (refusal.code === 'internal') answer.details = `request id ${requestId}`
  const body = Buffer.from(JSON.stringify(answer))
  if (refusal.retryAfterSeconds !== undefined) response.setHeader('Retry-After', refusal.retryAfterSeconds)
  // The rest of the body may still be coming, and nobody waits for it any more.
  if (refusal.code === 'request_timeout') response.shouldKeepAlive = false
  response
    .writeHead(refusal.status, { 'Content-Type': json, 'Content-Length': body.length, 'X-Request-ID': requestId })
    .end(body)
}
