import { Readable } from 'node:stream'
import type { Routes } from '@godwit/contract'
import type { FastifyInstance } from 'fastify'
import type { Deps } from '../deps.ts'
import { registerSpeedTestRoutes } from '../diagnostics/routes.ts'
import { AppError } from '../errors.ts'
import { bindRoute, type Input } from '../http/bind.ts'
import { leaveBodiesUnread } from '../http/bodies.ts'
import { readSource } from '../http/request-source.ts'
import { receiveUpload } from './actions.ts'
import { readRequestBytes } from './request-bytes.ts'
import { requireSignature } from './require-signature.ts'
import { canRedirect, chooseDownloadAnswer, formatStoredRange } from './rules.ts'
import { createUploadSessions, type UploadSessions } from './upload-sessions.ts'

/** `no-transform`: a proxy that compressed the bytes would take away the length by which devices check them. */
const cacheControl = {
  expiring: 'private, no-transform',
  permanent: 'public, max-age=31536000, immutable, no-transform',
}

/** The transfer door: bodies are streams here, and the signature of a URL is its authorization. */
export function registerTransferRoutes(app: FastifyInstance, deps: Deps): void {
  const sessions = createUploadSessions()
  leaveBodiesUnread(app)

  bindRoute(app, deps, 'uploadByPost', (input) => handleUpload(deps, sessions, input, undefined))
  bindRoute(app, deps, 'uploadByPut', (input) =>
    handleUpload(deps, sessions, input, input.request.headers['content-range']),
  )
  bindRoute(app, deps, 'download', (input) => handleDownload(deps, input))
  registerSpeedTestRoutes(app, deps)
}

async function handleUpload(
  deps: Deps,
  sessions: UploadSessions,
  { params, query, request, reply }: Input<Routes['uploadByPost'] | Routes['uploadByPut']>,
  contentRange: string | undefined,
): Promise<undefined> {
  const blobKey = params.uploadId
  requireSignature(deps, 'upload', blobKey, query)
  const { raw } = request
  const abort = () => {
    // A request that has arrived as a whole settles by itself, and its client may still be there.
    if (!raw.complete) raw.destroy()
  }
  const answer = await sessions.takeOver(blobKey, abort, () =>
    receiveUpload(deps, { blobKey, bytes: readRequestBytes(raw), contentRange, from: readSource(request) }),
  )
  if (answer.isComplete) return
  const range = formatStoredRange(answer.receivedBytes)
  if (range !== undefined) reply.header('range', range)
  reply.code(308)
}

/** No SQL: the signature vouches for the key, and the store knows the size. */
async function handleDownload(
  deps: Deps,
  { params, query, request, reply }: Input<Routes['download']>,
): Promise<Readable | undefined> {
  const key = params.blobKey
  requireSignature(deps, 'download', key, query)
  const isPublic = query.expires === undefined
  const blob = await deps.downloads.find(key, { isPublic })
  if (blob === undefined) throw new AppError('not_found')
  const { sizeBytes } = blob
  const etag = `"${key}"`
  const { method, headers } = request
  const asked = { range: headers.range, ifRange: headers['if-range']?.toString() }
  const answer = chooseDownloadAnswer({ method, sizeBytes, etag, ...asked, ifNoneMatch: headers['if-none-match'] })
  if (canRedirect({ method, sizeBytes, answer, ...asked })) {
    const location = await blob.locate({ isPublic })
    if (location !== undefined) {
      reply.code(302).headers({ location, 'cache-control': 'no-store' })
      return
    }
  }
  const range = (answer.status === 206 ? answer.range : undefined) ?? { start: 0, end: sizeBytes - 1 }
  const hasBody = answer.status !== 304 && method !== 'HEAD' && sizeBytes > 0
  // Before anything is said of the bytes: a store that fails now is answered by another status.
  const bytes = hasBody ? await blob.read(range) : Readable.from([])
  reply.code(answer.status).headers({
    etag,
    'accept-ranges': 'bytes',
    'cache-control': isPublic ? cacheControl.permanent : cacheControl.expiring,
  })
  if (answer.status === 304) return
  if (answer.status === 206) reply.header('content-range', `bytes ${range.start}-${range.end}/${sizeBytes}`)
  reply.type('application/octet-stream').header('content-length', range.end - range.start + 1)
  return bytes
}
