import { z } from 'zod'
import { defineRoute } from '../route.ts'
import {
  ApiCatalog,
  DiagnosticsDownloadResponse,
  DiagnosticsUploadResponse,
  HealthResponse,
} from '../schemas/service.ts'

const uploadSpeed = {
  method: 'GET',
  tag: 'Diagnostics',
  summary: 'A URL to measure upload speed against',
  access: { by: 'bearer', permission: 'diagnostics.run', on: 'caller' },
  success: { status: 200, body: DiagnosticsUploadResponse },
} as const

const downloadSpeed = {
  method: 'GET',
  tag: 'Diagnostics',
  summary: 'A URL to measure download speed against',
  access: { by: 'bearer', permission: 'diagnostics.run', on: 'caller' },
  success: { status: 200, body: DiagnosticsDownloadResponse },
} as const

export const diagnosticsRoutes = {
  getCloudUpload: defineRoute({ ...uploadSpeed, path: '/api/v1/diagnostics/cloud_upload' }),
  getGcpUpload: defineRoute({
    ...uploadSpeed,
    path: '/api/v1/diagnostics/gcp_upload',
    description: 'The name that the public command line client calls.',
  }),
  getCloudDownload: defineRoute({ ...downloadSpeed, path: '/api/v1/diagnostics/cloud_download' }),
  getGcpDownload: defineRoute({
    ...downloadSpeed,
    path: '/api/v1/diagnostics/gcp_download',
    description: 'The name that the public command line client calls.',
  }),
}

/** RFC 9727, section 4.1: the linkset says by its profile that it is a catalog. */
const apiCatalogType = 'application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"'

const prometheusType = 'text/plain; version=0.0.4; charset=utf-8'

export const serviceRoutes = {
  getHealth: defineRoute({
    method: 'GET',
    path: '/healthz',
    tag: 'Service',
    summary: 'Whether the process is alive',
    access: { by: 'nobody' },
    success: { status: 200, body: HealthResponse },
  }),
  getReadiness: defineRoute({
    method: 'GET',
    path: '/readyz',
    tag: 'Service',
    summary: 'Whether the service can serve',
    description:
      '503 while it starts, waits for its first contact with the database, or stops; `details` says which. Not when the database is lost later: devices are answered without it.',
    access: { by: 'nobody' },
    success: { status: 200, body: HealthResponse },
    errors: ['unavailable'],
  }),
  getPrometheusMetrics: defineRoute({
    method: 'GET',
    path: '/metrics',
    tag: 'Service',
    summary: 'Figures of the process, in the text format of Prometheus',
    description: 'Takes the bearer token that the operator has set (`GODWIT_METRICS_TOKEN`), if any.',
    access: { by: 'nobody' },
    success: { status: 200, contentType: prometheusType },
    errors: ['unauthenticated'],
  }),
  getOpenApi: defineRoute({
    method: 'GET',
    path: '/openapi.json',
    tag: 'Service',
    summary: 'This document',
    access: { by: 'nobody' },
    success: { status: 200, body: z.record(z.string(), z.unknown()) },
  }),
  getApiCatalog: defineRoute({
    method: 'GET',
    path: '/.well-known/api-catalog',
    tag: 'Service',
    summary: 'API catalog (RFC 9727)',
    access: { by: 'nobody' },
    success: { status: 200, body: ApiCatalog, contentType: apiCatalogType },
  }),
}
