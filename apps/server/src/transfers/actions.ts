import { BlobsUnavailableError, LostBytesError, type Parts } from '../blobs/blob-store.ts'
import type { Deps } from '../deps.ts'
import { AppError } from '../errors.ts'
import type { RequestSource } from '../http/actor.ts'
import { finishUpload, getUpload, type Upload } from './finish-upload.ts'
import { advanceReceivedBytes, resetReceivedBytes } from './queries.ts'
import { hashBytes, type RequestBytes, takeBytes } from './request-bytes.ts'
import { type ChunkDecision, chooseAnswer, decideChunk, otherBytesConflict, parseContentRange } from './rules.ts'

export type UploadAnswer = { isComplete: true } | { isComplete: false; receivedBytes: number }

type UploadRequest = { bytes: RequestBytes; contentRange: string | undefined; from: RequestSource }

/** Receives what a request brings of a registered artifact: all of it, or with Content-Range a chunk or a question. */
export async function receiveUpload(deps: Deps, input: UploadRequest & { blobKey: string }): Promise<UploadAnswer> {
  let upload = await getUpload(deps.db, input.blobKey)
  if (!upload.isFinished && (await deps.blobs.find(upload.blobKey)) !== undefined) {
    // The process died between making the bytes final and saying so: they are the artifact's, whatever is sent now.
    await finishUpload(deps, upload.blobKey, input.from)
    upload = await getUpload(deps.db, upload.blobKey)
  }
  if (input.contentRange !== undefined) return await receiveChunk(deps, upload, input, input.contentRange)
  if (upload.isFinished) return await compareWithFinished(upload, input.bytes)
  return await receiveWhole(deps, upload, input)
}

async function receiveWhole(deps: Deps, upload: Upload, { bytes, from }: UploadRequest): Promise<UploadAnswer> {
  const { blobKey: key, sizeBytes } = upload
  if (bytes.contentLength !== undefined && bytes.contentLength > sizeBytes) {
    throw new AppError('payload_too_large', `size: ${sizeBytes} bytes were registered`)
  }
  await resetReceivedBytes(deps.db, { key })
  await deps.blobs.dropParts(key, upload.parts)
  let parts: Parts = []
  try {
    const source = takeBytes(bytes.source, { maxBytes: sizeBytes })
    const written = await deps.blobs.write(key, { offset: 0, parts, source })
    parts = written.parts
    if (mustBeTold(written.failure)) throw written.failure
    if (written.failure !== undefined || written.writtenBytes < sizeBytes) {
      throw new AppError('size_mismatch', `size: ${sizeBytes} bytes were registered, ${written.writtenBytes} arrived`)
    }
  } catch (error) {
    await deps.blobs.discard(key, parts)
    throw error
  }
  return await advance(deps, from, upload, { fromBytes: 0, fromParts: [], toBytes: sizeBytes, toParts: parts })
}

/** What arrived of a chunk stays, whatever became of its rest. */
async function receiveChunk(
  deps: Deps,
  upload: Upload,
  request: UploadRequest,
  contentRange: string,
): Promise<UploadAnswer> {
  const range = parseContentRange(contentRange)
  if (range === undefined) {
    throw new AppError('invalid_request', 'Content-Range: must be bytes FROM-TO/TOTAL or bytes */TOTAL')
  }
  const decision = decideChunk(upload, range, request.bytes.contentLength)
  if (decision.kind === 'refuse') throw new AppError('invalid_request', decision.details)
  if (decision.kind === 'answer') return await answerProgress(deps, request.from, upload.blobKey)
  return await storeChunk(deps, upload, request, decision)
}

async function storeChunk(
  deps: Deps,
  upload: Upload,
  { bytes, from }: UploadRequest,
  chunk: ChunkDecision & { kind: 'store' },
): Promise<UploadAnswer> {
  const { blobKey: key, parts } = upload
  const { offset } = chunk
  const written = await deps.blobs
    .write(key, { offset, parts, source: takeBytes(bytes.source, chunk) })
    .catch(async (error: unknown) => {
      if (!(error instanceof LostBytesError)) throw error
      deps.log.error({ key, reason: error.message }, 'the store has lost bytes; their upload starts again')
      await resetReceivedBytes(deps.db, { key, parts })
      return undefined
    })
  if (written === undefined) return await answerProgress(deps, from, key)
  const toBytes = offset + written.writtenBytes
  const answer = await advance(deps, from, upload, {
    fromBytes: offset,
    fromParts: parts,
    toBytes,
    toParts: written.parts,
  })
  if (mustBeTold(written.failure)) throw written.failure
  return answer
}

/** Any other failure of a write is a broken connection: nobody hears the answer, and the client will ask. */
function mustBeTold(failure: unknown): boolean {
  return failure instanceof AppError || failure instanceof BlobsUnavailableError
}

/** Bytes count only now that they are durable. When another process was faster, its truth is the answer. */
async function advance(
  deps: Deps,
  from: RequestSource,
  { blobKey: key }: Upload,
  step: { fromBytes: number; fromParts: Parts; toBytes: number; toParts: Parts },
): Promise<UploadAnswer> {
  const isOurs = await advanceReceivedBytes(deps.db, { key, ...step })
  const [counting, others] = isOurs ? [step.toParts, step.fromParts] : [step.fromParts, step.toParts]
  await deps.blobs.dropParts(
    key,
    others.filter((part) => !counting.includes(part)),
  )
  return await answerProgress(deps, from, key)
}

async function answerProgress(deps: Deps, from: RequestSource, blobKey: string): Promise<UploadAnswer> {
  const upload = await getUpload(deps.db, blobKey)
  const answer = chooseAnswer(upload)
  if (answer === 'incomplete') return { isComplete: false, receivedBytes: upload.receivedBytes }
  if (answer === 'finish') await finishUpload(deps, blobKey, from)
  return { isComplete: true }
}

/** A client repeats an upload whose answer was lost. The same bytes are a success again, any others a conflict. */
async function compareWithFinished(upload: Upload, bytes: RequestBytes): Promise<UploadAnswer> {
  const conflict = new AppError(otherBytesConflict[upload.artifact.kind], 'other bytes have been uploaded to this URL')
  if (bytes.contentLength !== undefined && bytes.contentLength !== upload.sizeBytes) throw conflict
  if ((await hashBytes(bytes.source)) !== upload.sha256) throw conflict
  return { isComplete: true }
}
