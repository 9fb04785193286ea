import { createReadStream } from 'node:fs'
import { PassThrough } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createZstdCompress, createZstdDecompress } from 'node:zlib'
import pg from 'pg'
import { from as copyFrom, to as copyTo } from 'pg-copy-streams'
import { type WrittenFile, writeNewFile } from './files.ts'
import type { BackupTable } from './manifest.ts'

/**
 * Streams the rows of a query into a new file, in COPY's text format, which every version of PostgreSQL reads. After a
 * failure the connection can only be ended: its server goes on sending.
 */
export async function copyOut(
  client: pg.Client,
  input: { query: string; path: string; isCompressed: boolean },
): Promise<{ file: WrittenFile; rowCount: number }> {
  const rows = client.query(copyTo(`copy (${input.query}) to stdout`))
  const packed = input.isCompressed ? createZstdCompress() : new PassThrough()
  const [file] = await Promise.all([writeNewFile(input.path, packed), pipeline(rows, packed)])
  return { file, rowCount: rows.rowCount }
}

/** Returns how many rows there were. */
export async function copyIn(client: pg.Client, table: BackupTable, path: string): Promise<number> {
  const rows = client.query(copyFrom(`copy ${pg.escapeIdentifier(table.name)} (${listColumns(table)}) from stdin`))
  await pipeline(createReadStream(path), createZstdDecompress(), rows)
  return rows.rowCount
}

export function selectAll(table: { name: string; columns: string[] }): string {
  return `select ${listColumns(table)} from ${pg.escapeIdentifier(table.name)}`
}

function listColumns(table: { columns: string[] }): string {
  return table.columns.map((column) => pg.escapeIdentifier(column)).join(', ')
}
