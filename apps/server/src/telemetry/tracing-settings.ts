import { z } from 'zod'

const samplers = [
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
] as const

const Protocol = z.enum(['http/protobuf', 'http/json'])
const Endpoint = z.url({ protocol: /^https?$/ }).optional()

/**
 * The standard variables of OpenTelemetry that decide here. Headers, timeout, compression and certificates of the exporter
 * (`OTEL_EXPORTER_OTLP_…`) and `OTEL_RESOURCE_ATTRIBUTES` are read by its libraries.
 */
export const tracingSettings = {
  OTEL_SDK_DISABLED: z.stringbool().default(false),
  OTEL_TRACES_EXPORTER: z.enum(['otlp', 'none']).optional(),
  OTEL_EXPORTER_OTLP_ENDPOINT: Endpoint,
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: Endpoint,
  OTEL_EXPORTER_OTLP_PROTOCOL: Protocol.default('http/protobuf'),
  OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: Protocol.optional(),
  OTEL_SERVICE_NAME: z.string().max(255).default('godwit'),
  OTEL_TRACES_SAMPLER: z.enum(samplers).default('parentbased_always_on'),
  OTEL_TRACES_SAMPLER_ARG: z.coerce.number().min(0).max(1).default(1),
}

const Settings = z.object(tracingSettings)

export type TracingConfig = {
  protocol: z.output<typeof Protocol>
  serviceName: string
  sampler: (typeof samplers)[number]
  /** The part of the traces that the samplers `…traceidratio` take. */
  ratio: number
}

/** undefined: no traces. They are sent once there is somewhere to send them, or an exporter was named. */
export function readTracing(settings: z.output<typeof Settings>): TracingConfig | undefined {
  const isAsked =
    settings.OTEL_TRACES_EXPORTER ?? settings.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT ?? settings.OTEL_EXPORTER_OTLP_ENDPOINT
  if (settings.OTEL_SDK_DISABLED || settings.OTEL_TRACES_EXPORTER === 'none' || isAsked === undefined) return undefined
  return {
    protocol: settings.OTEL_EXPORTER_OTLP_TRACES_PROTOCOL ?? settings.OTEL_EXPORTER_OTLP_PROTOCOL,
    serviceName: settings.OTEL_SERVICE_NAME,
    sampler: settings.OTEL_TRACES_SAMPLER,
    ratio: settings.OTEL_TRACES_SAMPLER_ARG,
  }
}
