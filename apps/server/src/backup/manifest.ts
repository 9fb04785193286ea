import { createHash } from 'node:crypto'
import { readFile, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { z } from 'zod'
import { syncFolder } from '../sync-folder.ts'
import { writeNewFile } from './files.ts'

export const manifestName = 'manifest.json'
/** What the files look like. A change that an older version could not read gets another number. */
const format = 1

const FileName = z.string().regex(/^[a-z0-9_]+\.[a-z.]+$/)
const BackupFile = z.object({ name: FileName, size_bytes: z.int().min(0), sha256: z.string() })

const BackupTable = z.object({
  name: z.string(),
  columns: z.array(z.string()),
  row_count: z.int().min(0),
  /** Names of the months of a partitioned table. */
  partitions: z.array(z.string()),
  /** How far the numbers of identity columns have come; null: none was given out. */
  identities: z.array(z.object({ column: z.string(), last_value: z.string().nullable() })),
  file: BackupFile,
})
export type BackupTable = z.infer<typeof BackupTable>

const Manifest = z.object({
  format: z.literal(format),
  installation: z.string(),
  made_at: z.string(),
  postgres_version: z.string(),
  /** The last migration that the database had. */
  schema: z.string(),
  /** Where the files of the tables and the list of the blobs are. */
  folder: z.string().regex(/^database-[0-9a-z]+$/),
  tables: z.array(BackupTable),
  blobs: z.object({ count: z.int().min(0), size_bytes: z.int().min(0), file: BackupFile }),
})
export type Manifest = z.infer<typeof Manifest>

const Sealed = z.object({ sha256: z.string(), manifest: z.unknown() })

export function createManifest(input: Omit<Manifest, 'format'>): Manifest {
  return { format, ...input }
}

/** Last of all, and at once: a backup that did not get so far has none, or that of the backup before. */
export async function writeManifest(dir: string, manifest: Manifest): Promise<void> {
  const part = join(dir, `${manifestName}.part`)
  const sealed = { sha256: hashManifest(manifest), manifest }
  const text = Buffer.from(`${JSON.stringify(sealed, undefined, 2)}\n`)
  await writeNewFile(part, Readable.from([text]), { replace: true })
  await rename(part, join(dir, manifestName))
  await syncFolder(dir)
}

/** undefined when there is none. */
export async function findManifest(dir: string): Promise<Manifest | undefined> {
  const path = join(dir, manifestName)
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  if (text === undefined) return undefined
  const sealed = Sealed.safeParse(parseJson(text))
  if (!sealed.success || hashManifest(sealed.data.manifest) !== sealed.data.sha256) {
    throw new Error(`${path} is damaged: what it says does not have the SHA-256 that it names.`)
  }
  const manifest = Manifest.safeParse(sealed.data.manifest)
  if (!manifest.success) throw new Error(`${path} has a form that this version of Godwit does not know.`)
  return manifest.data
}

export async function readManifest(dir: string): Promise<Manifest> {
  const manifest = await findManifest(dir)
  if (manifest !== undefined) return manifest
  throw new Error(`${join(dir, manifestName)} is missing: this is no backup, or one that did not finish.`)
}

function hashManifest(manifest: unknown): string {
  return createHash('sha256').update(JSON.stringify(manifest)).digest('hex')
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
