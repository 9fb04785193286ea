import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { Cell } from './questions.ts'
import type { RowStore } from './rows.ts'

/** As much of `@duckdb/node-api` as is used here: it is no dependency. */
type Connection = { runAndReadAll: (sql: string) => Promise<{ getRowsJS: () => unknown[][] }>; closeSync: () => void }
type Instance = { connect: () => Promise<Connection>; closeSync: () => void }
type DuckDb = { DuckDBInstance: { create: (file: string) => Promise<Instance> } }

export function findDuckDb(): DuckDb | undefined {
  try {
    return createRequire(import.meta.url)('@duckdb/node-api')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'MODULE_NOT_FOUND') return undefined
    throw error
  }
}

export async function loadDuckDbRows({ DuckDBInstance }: DuckDb, folder: string, file: string): Promise<RowStore> {
  const open = async () => {
    const instance = await DuckDBInstance.create(join(folder, 'rows.duckdb'))
    return { instance, connection: await instance.connect() }
  }
  let opened = await open()
  const close = async () => {
    opened.connection.closeSync()
    opened.instance.closeSync()
  }
  await opened.connection.runAndReadAll(
    `create table observations as select * from read_csv('${file}', header = false, columns = {
       'device': 'integer', 'platform': 'varchar', 'release_version': 'varchar', 'patch_number': 'integer',
       'time': 'timestamp'
     })`,
  )
  await opened.connection.runAndReadAll('checkpoint')
  return {
    name: 'DuckDB',
    select: async (sql) => (await opened.connection.runAndReadAll(sql)).getRowsJS() as Cell[][],
    restart: async () => {
      await close()
      opened = await open()
    },
    close,
  }
}
