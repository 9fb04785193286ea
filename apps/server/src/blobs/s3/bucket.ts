import type { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  HeadBucketCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  type ListMultipartUploadsCommandInput,
  ListObjectsV2Command,
  PutObjectCommand,
  UploadPartCopyCommand,
} from '@aws-sdk/client-s3'
import { getSignedUrl } from '@aws-sdk/s3-request-presigner'
import { BlobsUnavailableError } from '../blob-store.ts'
import { connect, isNotFound, timeouts } from './connection.ts'
import type { S3Location } from './location.ts'
import { readUntilIdle } from './read-until-idle.ts'

/** Metadata of an object that is a blob. */
const hashMetadata = 'sha256'

export type ObjectInfo = { sizeBytes: number; etag: string | undefined; sha256: string | undefined }

/** Old enough pieces are left over. */
export type Dated = { name: string; at: Date }

export type Bucket = ReturnType<typeof openBucket>

/** The operations on a bucket that the store is made of, one request each. Names are object keys without the prefix. */
export function openBucket(location: S3Location) {
  const { run, client, publicClient } = connect(location)
  const Bucket = location.bucket
  const at = (name: string) => ({ Bucket, Key: `${location.prefix}${name}` })
  const toDated = (key = '', date = new Date()): Dated => ({ name: key.slice(location.prefix.length), at: date })
  const encryption =
    location.encryption === undefined
      ? {}
      : { ServerSideEncryption: location.encryption.algorithm, SSEKMSKeyId: location.encryption.kmsKeyId }
  const blob = (sha256: string) => ({
    ...encryption,
    ContentType: 'application/octet-stream',
    Metadata: { [hashMetadata]: sha256 },
    CacheControl: 'public, max-age=31536000, immutable, no-transform',
  })

  return {
    objectKey: (name: string) => at(name).Key,

    async head(name: string): Promise<ObjectInfo | undefined> {
      try {
        const { ContentLength, ETag, Metadata } = await run('find', timeouts.quickMs, (abortSignal) =>
          client.send(new HeadObjectCommand(at(name)), { abortSignal }),
        )
        return { sizeBytes: ContentLength ?? 0, etag: ETag, sha256: Metadata?.[hashMetadata] }
      } catch (error) {
        if (isNotFound(error)) return undefined
        throw error
      }
    },

    /** Resolves with the first bytes at hand. `ifMatch` is the etag that they must belong to. */
    async get(name: string, range: { start: number; end: number }, ifMatch?: string): Promise<Readable> {
      const Range = `bytes=${range.start}-${range.end}`
      const { Body } = await run('read', timeouts.quickMs, (abortSignal) =>
        client.send(new GetObjectCommand({ ...at(name), Range, IfMatch: ifMatch }), { abortSignal }),
      )
      if (Body === undefined) throw new BlobsUnavailableError('read: the answer has no body')
      return readUntilIdle(Body as Readable)
    },

    /** The bytes of a small object; undefined when it is gone, or has fewer. */
    async getBytes(name: string, length: number): Promise<Buffer | undefined> {
      try {
        const bytes = await buffer(await this.get(name, { start: 0, end: length - 1 }))
        return bytes.length === length ? bytes : undefined
      } catch (error) {
        if (isNotFound(error)) return undefined
        throw error
      }
    },

    async putPart(name: string, bytes: Buffer): Promise<void> {
      await run('write', timeouts.transferMs, (abortSignal) =>
        client.send(new PutObjectCommand({ ...at(name), ...encryption, Body: bytes }), { abortSignal }),
      )
    },

    /** Rejects when there is one under this name. */
    async putBlob(name: string, bytes: Buffer, sha256: string): Promise<void> {
      await run('finish', timeouts.transferMs, (abortSignal) =>
        client.send(new PutObjectCommand({ ...at(name), ...blob(sha256), Body: bytes, IfNoneMatch: '*' }), {
          abortSignal,
        }),
      )
    },

    async startMultipart(name: string, sha256: string): Promise<string> {
      const { UploadId } = await run('finish', timeouts.quickMs, (abortSignal) =>
        client.send(new CreateMultipartUploadCommand({ ...at(name), ...blob(sha256) }), { abortSignal }),
      )
      if (UploadId === undefined) throw new BlobsUnavailableError('finish: the bucket has no multipart uploads')
      return UploadId
    },

    /** Copies an object as the part of this number, counted from 1, within the store. */
    async copyPart(name: string, UploadId: string, PartNumber: number, from: string) {
      const CopySource = `${Bucket}/${at(from).Key}`
      const { CopyPartResult } = await run('finish', timeouts.transferMs, (abortSignal) =>
        client.send(new UploadPartCopyCommand({ ...at(name), UploadId, PartNumber, CopySource }), { abortSignal }),
      )
      return { PartNumber, ETag: CopyPartResult?.ETag }
    },

    /** Rejects when there is an object under this name. */
    async completeMultipart(
      name: string,
      UploadId: string,
      Parts: { PartNumber: number; ETag: string | undefined }[],
    ): Promise<void> {
      const input = { ...at(name), UploadId, MultipartUpload: { Parts }, IfNoneMatch: '*' }
      await run('finish', timeouts.composeMs, (abortSignal) =>
        client.send(new CompleteMultipartUploadCommand(input), { abortSignal }),
      )
    },

    async abortMultipart(name: string, UploadId: string): Promise<void> {
      try {
        await run('remove', timeouts.quickMs, (abortSignal) =>
          client.send(new AbortMultipartUploadCommand({ ...at(name), UploadId }), { abortSignal }),
        )
      } catch (error) {
        if (!isNotFound(error)) throw error
      }
    },

    async remove(name: string): Promise<void> {
      try {
        await run('remove', timeouts.quickMs, (abortSignal) =>
          client.send(new DeleteObjectCommand(at(name)), { abortSignal }),
        )
      } catch (error) {
        if (!isNotFound(error)) throw error
      }
    },

    /** Lists a page at a time, at most a thousand. */
    async *list(start: string): AsyncGenerator<Dated[]> {
      let token: string | undefined
      do {
        const input = { Bucket, Prefix: at(start).Key, ContinuationToken: token }
        const page = await run('list', timeouts.transferMs, (abortSignal) =>
          client.send(new ListObjectsV2Command(input), { abortSignal }),
        )
        yield (page.Contents ?? []).map(({ Key, LastModified }) => toDated(Key, LastModified))
        token = page.IsTruncated === true ? page.NextContinuationToken : undefined
      } while (token !== undefined)
    },

    async *listMultiparts(start: string): AsyncGenerator<(Dated & { uploadId: string })[]> {
      let next: { KeyMarker?: string | undefined; UploadIdMarker?: string | undefined } | undefined = {}
      do {
        const input: ListMultipartUploadsCommandInput = { Bucket, Prefix: at(start).Key, ...next }
        const page = await run('list', timeouts.transferMs, (abortSignal) =>
          client.send(new ListMultipartUploadsCommand(input), { abortSignal }),
        )
        yield (page.Uploads ?? []).map(({ Key, Initiated, UploadId = '' }) => ({
          ...toDated(Key, Initiated),
          uploadId: UploadId,
        }))
        next =
          page.IsTruncated === true
            ? { KeyMarker: page.NextKeyMarker, UploadIdMarker: page.NextUploadIdMarker }
            : undefined
      } while (next !== undefined)
    },

    async sign(name: string, options: { expiresInSeconds: number; cacheControl: string }): Promise<string> {
      const command = new GetObjectCommand({
        ...at(name),
        ResponseCacheControl: options.cacheControl,
        ResponseContentType: 'application/octet-stream',
      })
      return await getSignedUrl(publicClient, command, { expiresIn: options.expiresInSeconds })
    },

    async check(): Promise<void> {
      try {
        await run('check', timeouts.quickMs, (abortSignal) =>
          client.send(new HeadBucketCommand({ Bucket }), { abortSignal }),
        )
      } catch (error) {
        if (isNotFound(error)) throw new BlobsUnavailableError(`there is no bucket ${Bucket}`)
        throw error
      }
    },
  }
}
