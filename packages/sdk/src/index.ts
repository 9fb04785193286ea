import {
  type ErrorCode,
  ErrorResponse,
  listPathParameters,
  type OperationId,
  operationIds,
  type PathParameters,
  type Route,
  type Routes,
  routes,
} from '@godwit/contract'
import type { z } from 'zod'

type Fetch = (url: string, init: RequestInit) => Promise<Response>

export type ClientOptions = {
  /** Where the service is, without `/api/v1`: `http://localhost:8080`. */
  baseUrl: string
  /** An API key or access token. Leave out for devices. */
  token?: string
  fetch?: Fetch
  headers?: Record<string, string>
}

type ParametersOf<R extends Route> = keyof PathParameters<R['path']> extends never
  ? unknown
  : { params: PathParameters<R['path']> }
type QueryOf<R extends Route> = R['query'] extends z.ZodType ? { query?: z.input<R['query']> } : unknown
type BodyOf<R extends Route> = R['body'] extends z.ZodType ? { body: z.input<R['body']> } : unknown
/** Newline-delimited JSON: whole, or as a stream of UTF-8. */
export type Lines = string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>
type LinesOf<R extends Route> = R['lines'] extends z.ZodType ? { body: Lines } : unknown
export type InputOf<R extends Route> = ParametersOf<R> & QueryOf<R> & BodyOf<R> & LinesOf<R>

type OutputOf<R extends Route> = R['success']['body'] extends z.ZodType
  ? z.output<R['success']['body']>
  : R['success'] extends { contentType: 'image/png' }
    ? Uint8Array<ArrayBuffer>
    : undefined

type Operation<R extends Route> =
  unknown extends InputOf<R> ? () => Promise<OutputOf<R>> : (input: InputOf<R>) => Promise<OutputOf<R>>

/** One method per operation of the contract, by operation id. */
export type Client = { [Id in OperationId]: Operation<Routes[Id]> }

/** What the service answered when it was not a success. */
export class ApiError extends Error {
  readonly status: number
  readonly code: ErrorCode | string
  readonly details: string | undefined
  readonly headers: Headers

  constructor(status: number, body: ErrorResponse, headers: Headers) {
    super(body.message)
    this.name = 'ApiError'
    this.status = status
    this.code = body.code
    this.details = body.details
    this.headers = headers
  }
}

type AnyInput = { params?: Record<string, string | number>; query?: Record<string, unknown>; body?: unknown }

/** A typed client. Operations without a body in their answer (204, 304) resolve to undefined; others throw ApiError. */
export function createClient(options: ClientOptions): Client {
  const send = options.fetch ?? ((url, init) => fetch(url, init))
  const call = async (route: Route, input: AnyInput = {}) => {
    const response = await send(buildUrl(options.baseUrl, route, input), buildRequest(options, route, input))
    return await readResponse(route, response)
  }
  return Object.fromEntries(
    operationIds.map((id) => [id, (input?: AnyInput) => call(routes[id], input)]),
  ) as unknown as Client
}

function buildUrl(baseUrl: string, route: Route, input: AnyInput): string {
  const path = listPathParameters(route.path).reduce(
    (filled, name) => filled.replace(`{${name}}`, encodeURIComponent(String(input.params?.[name]))),
    route.path,
  )
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(input.query ?? {})) {
    if (value !== undefined) query.set(name, String(value))
  }
  return baseUrl.replace(/\/+$/, '') + path + (query.size > 0 ? `?${query}` : '')
}

function buildRequest(options: ClientOptions, route: Route, input: AnyInput): RequestInit {
  const headers: Record<string, string> = { ...options.headers }
  if (options.token !== undefined && route.access.by === 'bearer') headers.authorization = `Bearer ${options.token}`
  if (input.body === undefined) return { method: route.method, headers }
  if (route.lines !== undefined) {
    headers['content-type'] = 'application/x-ndjson'
    // fetch sends a stream only to those who say that they do not read the answer before it ends.
    return { method: route.method, headers, body: input.body as Lines, duplex: 'half' }
  }
  headers['content-type'] = 'application/json'
  return { method: route.method, headers, body: JSON.stringify(input.body) }
}

async function readResponse(route: Route, response: Response): Promise<unknown> {
  const { status, body, contentType, others = {} } = route.success
  if (response.status === status) {
    if (contentType === 'image/png') return new Uint8Array(await response.arrayBuffer())
    return body === undefined ? undefined : body.parse(await response.json())
  }
  if (response.status in others) return undefined
  const error = ErrorResponse.safeParse(await response.json().catch(() => undefined))
  const fallback = { code: 'unknown', message: `The service answered ${response.status}.` }
  throw new ApiError(response.status, error.success ? error.data : fallback, response.headers)
}
