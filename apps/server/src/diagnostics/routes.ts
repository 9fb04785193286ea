import { randomBytes } from 'node:crypto'
import { Readable } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import type { Deps } from '../deps.ts'
import { AppError } from '../errors.ts'
import { bindRoute } from '../http/bind.ts'
import { readRequestBytes, takeBytes } from '../transfers/request-bytes.ts'
import { requireSignature } from '../transfers/require-signature.ts'

const urlLifetimeMs = 10 * 60 * 1000
const maxUploadBytes = 16_000_000
/** The public command line client refuses any other size. */
const downloadBytes = 16_000_000
const downloadStepBytes = 64_000

/** A speed test is nobody's: there is no key to sign. */
const noKey = ''

/** The control door's half: URLs to measure against. */
export function registerDiagnosticsRoutes(app: FastifyInstance, deps: Deps): void {
  const sign = (purpose: 'diagnostics-upload' | 'diagnostics-download') =>
    deps.urls.sign(purpose, noKey, new Date(deps.clock().getTime() + urlLifetimeMs))
  for (const id of ['getCloudUpload', 'getGcpUpload'] as const) {
    bindRoute(app, deps, id, async () => ({ upload_url: sign('diagnostics-upload') }))
  }
  for (const id of ['getCloudDownload', 'getGcpDownload'] as const) {
    bindRoute(app, deps, id, async () => ({ download_url: sign('diagnostics-download') }))
  }
}

/** The transfer door's half: what the URLs lead to. */
export function registerSpeedTestRoutes(app: FastifyInstance, deps: Deps): void {
  bindRoute(app, deps, 'uploadSpeedTest', async ({ query, request }) => {
    requireSignature(deps, 'diagnostics-upload', noKey, query)
    const { source, contentLength = 0 } = readRequestBytes(request.raw)
    if (contentLength > maxUploadBytes) throw new AppError('payload_too_large')
    for await (const _ of takeBytes(source, { maxBytes: maxUploadBytes })) {
      // Measured by the client, wanted by nobody.
    }
    return undefined
  })
  bindRoute(app, deps, 'downloadSpeedTest', async ({ query, request, reply }) => {
    requireSignature(deps, 'diagnostics-download', noKey, query)
    reply.type('application/octet-stream').headers({
      'content-length': downloadBytes,
      'cache-control': 'no-store, no-transform',
    })
    return Readable.from(request.method === 'HEAD' ? [] : generateBytes())
  })
}

/** The same random step again and again: too far apart for a compressing proxy to make the line look faster. */
function* generateBytes(): Generator<Buffer> {
  const step = randomBytes(downloadStepBytes)
  for (let sent = 0; sent < downloadBytes; sent += downloadStepBytes) yield step
}
