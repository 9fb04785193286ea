import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { CreatePatchEventRequest, type PatchCheckRequest, type Route, routes } from '@godwit/contract'
import type { FastifyBaseLogger } from 'fastify'
import type { Deps } from '../deps.ts'
import type { AppError } from '../errors.ts'
import { bodyTimeoutMs, maxBodyBytes, readJson } from '../http/bodies.ts'
import { toAppError } from '../http/error-handler.ts'
import { refuseOverLimit } from '../http/rate-limit.ts'
import type { RefusalBrake } from '../http/refusal-brake.ts'
import type { RouteDurations } from '../http/request-durations.ts'
import { chooseRequestId } from '../http/request-id.ts'
import { sendRefusal } from '../http/send-refusal.ts'
import { endRequestSpan } from '../http/trace-requests.ts'
import { validate } from '../http/validation.ts'
import { secondsSince } from '../telemetry/durations.ts'
import type { Answer } from './app-answers.ts'
import { createDeviceRateLimiter, type DeviceRateLimiter } from './device-rate-limit.ts'
import { readBody } from './read-body.ts'
import { readPatchCheck } from './read-patch-check.ts'

const json = 'application/json; charset=utf-8'
const bodyLimits = { maxBytes: maxBodyBytes, timeoutMs: bodyTimeoutMs }

type Door = Deps & { deviceLimiter: DeviceRateLimiter; brake: RefusalBrake }

/** The answer as JSON in ASCII, or undefined for none. */
type Handle = (door: Door, body: unknown) => string | undefined | Promise<string | undefined>
type Operation = { path: string; handle: Handle; durations: RouteDurations }

/** Answers devices before the control door's router sees them; everything else is for `behind`. */
export function createDeviceDoor(deps: Deps, behind: RequestListener, brake: RefusalBrake): RequestListener {
  const door: Door = {
    ...deps,
    brake,
    deviceLimiter: createDeviceRateLimiter(deps.config.requestsPerMinute, deps.sharedCounts),
  }
  const operations = new Map<string, Operation>()
  const add = ({ method, path }: Route, handle: Handle) =>
    operations.set(path, { path, handle, durations: deps.requests.of(method, path) })
  add(routes.checkPatch, checkPatch)
  add(routes.createPatchEvent, createPatchEvent)
  return (request, response) => {
    const operation = request.method === 'POST' ? findOperation(operations, request.url ?? '') : undefined
    if (operation === undefined) behind(request, response)
    else answer(door, operation, request, response)
  }
}

/** A base_url with a trailing slash makes devices ask for `//api/v1/patches/check`. */
function findOperation(operations: Map<string, Operation>, url: string): Operation | undefined {
  return operations.get(url) ?? operations.get(url.replace(/\?.*$/s, '').replaceAll(/\/{2,}/g, '/'))
}

function answer(door: Door, operation: Operation, request: IncomingMessage, response: ServerResponse): void {
  const { path, handle, durations } = operation
  const startedAtMs = performance.now()
  const requestId = chooseRequestId(request)
  const span = door.tracing?.startRequest({ method: 'POST', route: path, headers: request.headers })
  const settle = (status: number) => {
    durations.add(status, secondsSince(startedAtMs))
    endRequestSpan(span, status)
  }
  const succeed = (body: string | undefined) => {
    sendBody(response, requestId, body)
    settle(response.statusCode)
  }
  const fail = (error: unknown) => {
    const refusal = toRefusal(door, requestId, error)
    // That it may leave late is for who asked, and tells nothing of the service.
    settle(refusal.status)
    refuse(door, response, requestId, refusal)
  }
  const onBody = (body: Buffer) => {
    try {
      const { value } = readJson(body)
      const result = span === undefined ? handle(door, value) : span.run(() => handle(door, value))
      if (result instanceof Promise) result.then(succeed).catch(fail)
      else succeed(result)
    } catch (error) {
      fail(error)
    }
  }
  readBody(request, bodyLimits, onBody, fail)
}

function checkPatch(door: Door, body: unknown): string | Promise<string> {
  const check = readPatchCheck(body)
  limitDevice(door, check.app_id, check.client_id)
  const found = door.deviceIndex.answer(check)
  return found instanceof Promise
    ? found.then((answer) => recordAnswered(door, check, answer))
    : recordAnswered(door, check, found)
}

function recordAnswered(door: Door, check: PatchCheckRequest, { text, rolledBack }: Answer): string {
  if (rolledBack !== undefined) door.recorder.recordCheck(check, rolledBack)
  return text
}

async function createPatchEvent(door: Door, body: unknown): Promise<undefined> {
  const { event } = validate(CreatePatchEventRequest, body)
  limitDevice(door, event.app_id, event.client_id)
  if (door.deviceIndex.hasApp(event.app_id)) await door.recorder.storeEvent(event)
}

/** Never by address: a whole operator's network can stand behind one. */
function limitDevice(door: Door, appId: string, clientId: string | null | undefined): void {
  if (clientId !== undefined && clientId !== null) refuseOverLimit(door.deviceLimiter.take(appId, clientId))
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

function toRefusal(door: Door, requestId: string, error: unknown): AppError {
  return toAppError(error, {
    // Made for faults of ours alone: a flood of refusals must stay cheap.
    get log() {
      return door.log.child({ reqId: requestId }) as FastifyBaseLogger
    },
  })
}

function refuse(door: Door, response: ServerResponse, requestId: string, refusal: AppError): void {
  // The rest of the body may still be coming, and nobody waits for it any more.
  if (refusal.code === 'request_timeout') response.shouldKeepAlive = false
  const send = () => sendRefusal(response, requestId, refusal)
  if (refusal.code === 'rate_limited') door.brake(response, send)
  else send()
}
