import { Readable } from 'node:stream'
import {
  isTextParameter,
  type OperationId,
  type PathParameters,
  type Route,
  type Routes,
  routes,
} from '@godwit/contract'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { z } from 'zod'
import type { Deps } from '../deps.ts'
import { AppError } from '../errors.ts'
import type { Actor } from './actor.ts'
import { authenticate } from './authenticate.ts'
import { authorizeOnApp, authorizeOnCaller, authorizeOnOrganization } from './authorize.ts'
import { getRawBody } from './bodies.ts'
import { readSource } from './request-source.ts'
import { validate } from './validation.ts'

type OutputOf<Schema> = Schema extends z.ZodType ? z.output<Schema> : undefined
type ActorOf<R extends Route> = R['access'] extends { by: 'bearer' } ? Actor : undefined

export type Input<R extends Route> = {
  actor: ActorOf<R>
  params: PathParameters<R['path']>
  query: OutputOf<R['query']>
  body: OutputOf<R['body']>
  request: FastifyRequest
  reply: FastifyReply
}

/** What a handler gives back: the body of the answer, a stream of bytes, or nothing. */
export type Output<R extends Route> = R['success']['body'] extends z.ZodType
  ? z.input<R['success']['body']>
  : R['success'] extends { contentType: string }
    ? Readable | undefined
    : // biome-ignore lint/suspicious/noConfusingVoidType: it is the result of an async function without a return
      void

/**
 * Binds an operation of the contract to its handler. The order is the same for every route: credential, rate, path,
 * rights, query and body, handler, answer. The answer passes through its schema, so that a column nobody meant to
 * publish cannot leave.
 */
export function bindRoute<Id extends OperationId>(
  app: FastifyInstance,
  deps: Deps,
  id: Id,
  handle: (input: Input<Routes[Id]>) => Promise<Output<Routes[Id]>>,
): void {
  const route: Route = routes[id]
  const actors = new WeakMap<FastifyRequest, Actor>()
  app.route({
    method: route.method,
    // A HEAD would record what a GET hands out, and hand out nothing.
    exposeHeadRoute: route.audit === undefined,
    url: route.path.replaceAll(/\{(\w+)\}/g, ':$1'),
    async onRequest(request) {
      if (route.access.by !== 'bearer') return
      const actor = await authenticate(deps, request.headers.authorization, readSource(request))
      actors.set(request, actor)
      const params = readPathParameters(request)
      const { permission, on } = route.access
      if (on === 'caller') authorizeOnCaller(actor, permission)
      if (on === 'app') await authorizeOnApp(deps, actor, permission, String(params.appId))
      if (on === 'organization' && params.organizationId !== undefined) {
        await authorizeOnOrganization(deps, actor, permission, Number(params.organizationId))
      }
    },
    async handler(request, reply) {
      const actor = actors.get(request)
      const query = route.query === undefined ? undefined : validate(route.query, request.query)
      const body = readBody(route, request)
      if (actor !== undefined) await authorizeOnOrganizationInBody(deps, actor, route, body)
      const params = readPathParameters(request)
      const output = await handle({ actor, params, query, body, request, reply } as unknown as Input<Routes[Id]>)
      return sendOutput(route, reply, output)
    },
  })
}

function readPathParameters(request: FastifyRequest): Record<string, string | number> {
  const entries = Object.entries(request.params as Record<string, string>)
  return Object.fromEntries(
    entries.map(([name, value]) => [name, isTextParameter(name) ? readText(value) : readId(value)]),
  )
}

/** An id that is not an int64 cannot be that of anything: 404, as for any other unknown id. */
function readId(value: string): number {
  const id = /^\d{1,16}$/.test(value) ? Number(value) : Number.NaN
  if (!Number.isSafeInteger(id)) throw new AppError('not_found')
  return id
}

function readText(value: string): string {
  if (value.includes('\0')) throw new AppError('not_found')
  return value
}

function readBody(route: Route, request: FastifyRequest): unknown {
  if (route.body === undefined) return undefined
  const raw = getRawBody(request)
  return validate(raw.kind === 'form' && route.form !== undefined ? route.form : route.body, raw.value)
}

/** `POST /apps` names its organization in the body, so that its rights can be judged only after the body was read. */
async function authorizeOnOrganizationInBody(deps: Deps, actor: Actor, route: Route, body: unknown): Promise<void> {
  if (route.access.by !== 'bearer' || route.access.on !== 'organization') return
  if (typeof body !== 'object' || body === null || !('organization_id' in body)) return
  await authorizeOnOrganization(deps, actor, route.access.permission, Number(body.organization_id))
}

function sendOutput(route: Route, reply: FastifyReply, output: unknown): FastifyReply {
  if (route.access.by === 'bearer' && !reply.hasHeader('cache-control')) reply.header('cache-control', 'no-store')
  const { status, body, contentType = 'application/json; charset=utf-8' } = route.success
  if (output instanceof Readable) return reply.send(output)
  if (reply.statusCode !== 200) return reply.send()
  reply.code(status)
  if (body === undefined) return reply.send()
  return reply.type(contentType).send(JSON.stringify(body.parse(output)))
}
