import type { z } from 'zod'
import type { ErrorCode } from './errors.ts'
import type { Permission } from './permissions.ts'
import type { AuditEventName } from './schemas/audit.ts'

export type HttpMethod = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/**
 * One operation of the API. The server binds it, the SDK calls it, the OpenAPI document describes it; nothing else
 * knows paths, shapes or who may call.
 */
export type Route = {
  method: HttpMethod
  /** From the root of the host, parameters in braces. */
  path: string
  tag: string
  summary: string
  description?: string
  access: Access
  query?: z.ZodObject
  body?: z.ZodType
  /** The body as multipart/form-data text fields, for clients that send it so. */
  form?: z.ZodType
  /** The body is a stream of bytes that no schema describes. */
  bytes?: 'upload'
  /** The body is newline-delimited JSON, a stream of any length; what each line is. */
  lines?: z.ZodType
  success: Success
  /** Beyond the codes that every route of its kind can answer; see `listErrorCodes`. */
  errors?: readonly ErrorCode[]
  /** The audit events that it can record, or why a route that changes something records none. */
  audit?: readonly AuditEventName[] | { none: string }
}

export type Access =
  /** A bearer token whose rights are judged on the app or organization that the request names, or on the caller itself. */
  | { by: 'bearer'; permission: Permission; on: 'app' | 'organization' | 'caller' }
  /** The signature in the URL is the authorization. */
  | { by: 'signature' }
  | { by: 'nobody' }

export type Success = {
  status: 200 | 201 | 204
  body?: z.ZodType
  contentType?: string
  /** Other successful statuses without a body, with what each means. */
  others?: Readonly<Record<number, string>>
}

export function defineRoute<const R extends Route>(route: R): R {
  return route
}

/** Names of the path parameters of a template, as a type: `/apps/{appId}` has `appId`. */
export type PathParameterNames<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}`
  ? Name | PathParameterNames<Rest>
  : never

const textParameters = ['appId', 'clientId', 'uploadId', 'blobKey'] as const
export type TextParameter = (typeof textParameters)[number]

/** App ids, client ids and storage keys are text, every other id in a path is an int64. */
export function isTextParameter(name: string): name is TextParameter {
  return (textParameters as readonly string[]).includes(name)
}

export type PathParameters<Path extends string> = {
  [Name in PathParameterNames<Path>]: Name extends TextParameter ? string : number
}

export function listPathParameters(path: string): string[] {
  return Array.from(path.matchAll(/\{(\w+)\}/g), (match) => match[1] ?? '')
}

/** Every code that a route can answer: those it names, and those that come with its kind. */
export function listErrorCodes(route: Route): ErrorCode[] {
  const codes = new Set<ErrorCode>(route.errors)
  if (route.access.by === 'bearer') {
    codes.add('unauthenticated').add('forbidden').add('rate_limited').add('unavailable').add('internal')
    if (route.access.on !== 'caller') codes.add('not_found')
  }
  if (route.access.by === 'signature') codes.add('invalid_signature').add('unavailable').add('internal')
  if (route.body !== undefined) codes.add('invalid_request').add('payload_too_large').add('request_timeout')
  if (route.query !== undefined) codes.add('invalid_request')
  return [...codes]
}
