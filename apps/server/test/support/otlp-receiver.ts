import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { z } from 'zod'

const Attribute = z.object({
  key: z.string(),
  value: z.object({ stringValue: z.string().optional(), intValue: z.coerce.number().optional() }),
})
const Span = z.object({
  traceId: z.string(),
  spanId: z.string(),
  parentSpanId: z.string().optional(),
  name: z.string(),
  kind: z.number(),
  startTimeUnixNano: z.coerce.bigint(),
  endTimeUnixNano: z.coerce.bigint(),
  attributes: z.array(Attribute).transform(toRecord),
  status: z.object({ code: z.number().optional() }),
})
/** opentelemetry-proto, ExportTraceServiceRequest, in its JSON form. */
const Export = z.object({
  resourceSpans: z.array(
    z.object({
      resource: z.object({ attributes: z.array(Attribute).transform(toRecord) }),
      scopeSpans: z.array(z.object({ spans: z.array(Span) })),
    }),
  ),
})
export type ReceivedSpan = z.output<typeof Span>

function toRecord(attributes: z.output<typeof Attribute>[]): Record<string, string | number | undefined> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, value.stringValue ?? value.intValue]))
}

export type OtlpReceiver = {
  url: string
  /** What arrived as JSON. */
  spans: ReceivedSpan[]
  resources: Record<string, string | number | undefined>[]
  /** Each body as it came. */
  bodies: Buffer[]
  contentTypes: (string | undefined)[]
  close: () => void
}

/** A collector: takes what is exported to it over OTLP/HTTP. */
export async function startOtlpReceiver(): Promise<OtlpReceiver> {
  const spans: ReceivedSpan[] = []
  const resources: OtlpReceiver['resources'] = []
  const bodies: Buffer[] = []
  const contentTypes: (string | undefined)[] = []
  const server = createServer(async (request, response) => {
    const body = await buffer(request)
    const isKnown = request.method === 'POST' && request.url === '/v1/traces'
    response.writeHead(isKnown ? 200 : 404, { 'content-type': 'application/json' }).end('{}')
    if (!isKnown) return
    bodies.push(body)
    contentTypes.push(request.headers['content-type'])
    if (request.headers['content-type'] !== 'application/json') return
    for (const { resource, scopeSpans } of Export.parse(JSON.parse(body.toString())).resourceSpans) {
      resources.push(resource.attributes)
      spans.push(...scopeSpans.flatMap((scope) => scope.spans))
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const close = () => {
    server.close()
    server.closeAllConnections()
  }
  return { url: `http://127.0.0.1:${port}`, spans, resources, bodies, contentTypes, close }
}
