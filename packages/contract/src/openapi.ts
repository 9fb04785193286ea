import { createDocument, type ZodOpenApiOperationObject, type ZodOpenApiPathsObject } from 'zod-openapi'
import { type ErrorCode, ErrorResponse, errorTable } from './errors.ts'
import { isTextParameter, listErrorCodes, listPathParameters, type Route } from './route.ts'
import { type OperationId, operationIds, routes } from './routes/index.ts'

const tags = [
  { name: 'Users', description: 'The own account.' },
  { name: 'Organizations', description: 'Who owns apps.' },
  { name: 'Service accounts', description: 'Accounts of an organization for machines, their keys and trust rules.' },
  { name: 'Audit log', description: 'What was changed, when, by whom. Plan `enterprise`.' },
  { name: 'Apps', description: 'What releases belong to.' },
  { name: 'Collaborators', description: 'People outside the organization who work on one app.' },
  { name: 'Channels', description: 'What devices ask: `stable` and others.' },
  { name: 'Releases', description: 'Builds of an app, and their artifacts.' },
  { name: 'Patches', description: 'Updates to a release.' },
  { name: 'Devices', description: 'What the updater inside an app calls. No authentication.' },
  { name: 'Metrics', description: 'Exact counts of devices and of what they report.' },
  { name: 'Diagnostics', description: 'Transfer speed.' },
  { name: 'Transfers', description: 'Signed URLs for bytes.' },
  { name: 'Service', description: 'Probes and documents.' },
]

/** The OpenAPI 3.1.0 document of the whole API (spec, Versioning 3). */
export function createOpenApiDocument() {
  return createDocument({
    openapi: '3.1.0',
    info: {
      title: 'Godwit',
      version: '1.0.0',
      description:
        'Self-hosted over-the-air code push. Any answer that is not 2xx carries an ErrorResponse, except 304, 308 and answers to HEAD.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    tags,
    security: [{ bearer: [] }],
    paths: describePaths(),
    components: {
      securitySchemes: {
        bearer: {
          type: 'http',
          scheme: 'bearer',
          description:
            'An API key (`sb_api_…`) of a person or service account, an access token (JWT, 15 minutes; see `/.well-known/openid-configuration`, and `POST /token` for CI jobs), or an ID token of an identity provider that the server is configured for.',
        },
      },
    },
  })
}

function describePaths(): ZodOpenApiPathsObject {
  const paths: Record<string, Record<string, ZodOpenApiOperationObject>> = {}
  for (const operationId of operationIds) {
    const route: Route = routes[operationId]
    const operations = paths[route.path] ?? {}
    paths[route.path] = operations
    operations[route.method.toLowerCase()] = describeOperation(operationId, route)
  }
  return paths
}

function describeOperation(operationId: OperationId, route: Route): ZodOpenApiOperationObject {
  const operation: ZodOpenApiOperationObject = {
    operationId,
    tags: [route.tag],
    summary: route.summary,
    responses: describeResponses(route),
  }
  if (route.description !== undefined) operation.description = route.description
  if (route.access.by !== 'bearer') operation.security = []
  const parameters = listPathParameters(route.path).map((name) => ({
    name,
    in: 'path' as const,
    required: true,
    schema: isTextParameter(name) ? ({ type: 'string' } as const) : ({ type: 'integer', format: 'int64' } as const),
  }))
  if (parameters.length > 0) operation.parameters = parameters
  if (route.query !== undefined) operation.requestParams = { query: route.query }
  const requestBody = describeRequestBody(route)
  if (requestBody !== undefined) operation.requestBody = requestBody
  return operation
}

function describeRequestBody(route: Route): ZodOpenApiOperationObject['requestBody'] {
  if (route.bytes !== undefined) {
    const file = { type: 'string', contentMediaType: 'application/octet-stream' } as const
    return {
      required: true,
      content: {
        'multipart/form-data': { schema: { type: 'object', properties: { file }, required: ['file'] } },
        'application/octet-stream': {},
      },
    }
  }
  if (route.lines !== undefined) return { required: true, content: { 'application/x-ndjson': { schema: route.lines } } }
  if (route.body === undefined) return undefined
  return {
    required: true,
    content: {
      'application/json': { schema: route.body },
      ...(route.form === undefined ? {} : { 'multipart/form-data': { schema: route.form } }),
    },
  }
}

const successTitles = { 200: 'Success.', 201: 'Created.', 204: 'Done; no content.' } as const

function describeResponses(route: Route): ZodOpenApiOperationObject['responses'] {
  const { status, body, contentType = 'application/json', others = {} } = route.success
  const responses: Record<string, object> = {
    [status]: {
      description: successTitles[status],
      ...(body === undefined && route.success.contentType === undefined
        ? {}
        : { content: { [contentType]: body === undefined ? {} : { schema: body } } }),
    },
  }
  for (const [other, description] of Object.entries(others)) responses[other] = { description }
  for (const [errorStatus, codes] of groupByStatus(listErrorCodes(route))) {
    responses[errorStatus] = {
      description: codes.map((code) => `\`${code}\`: ${errorTable[code].title}`).join('\n\n'),
      ...(errorStatus === 429
        ? { headers: { 'Retry-After': { schema: { type: 'integer' }, description: 'Seconds.' } } }
        : {}),
      content: { 'application/json': { schema: ErrorResponse } },
    }
  }
  return responses as ZodOpenApiOperationObject['responses']
}

function groupByStatus(codes: ErrorCode[]): [number, ErrorCode[]][] {
  const groups = Map.groupBy(codes, (code) => errorTable[code].status)
  return [...groups].toSorted(([a], [b]) => a - b)
}
