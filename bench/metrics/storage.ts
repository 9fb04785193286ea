import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import type { ActivityCounts } from './activity.ts'

export type StoredTable = { table: string; rows: number; setBytes: number; diskBytes: number }

const tables = ['activity_days', 'activity_hours']

/** When nothing has changed for a while: the server goes on merging what was imported. */
export async function measureStorage(connectionString: string): Promise<StoredTable[]> {
  const client = new pg.Client({ connectionString })
  await client.connect()
  try {
    let before = ''
    for (let tries = 0; tries < 60; tries += 1) {
      const stored = await Promise.all(tables.map((table) => readTable(client, table)))
      const now = JSON.stringify(stored)
      if (now === before) return stored
      before = now
      await sleep(3000)
    }
    throw new Error('the tables of the metrics go on changing')
  } finally {
    await client.end()
  }
}

async function readTable(client: pg.Client, table: string): Promise<StoredTable> {
  const { rows } = await client.query<Record<'rows' | 'set_bytes' | 'disk_bytes', string>>(
    `select count(*) as rows, coalesce(sum(octet_length(devices)), 0) as set_bytes,
       (select coalesce(sum(pg_total_relation_size(relid)), 0) from pg_partition_tree('${table}')) as disk_bytes
     from ${table}`,
  )
  const [row] = rows
  return {
    table,
    rows: Number(row?.rows),
    setBytes: Number(row?.set_bytes),
    diskBytes: Number(row?.disk_bytes),
  }
}

export function describeStorage(stored: StoredTable[], counts: ActivityCounts): string[] {
  const members: Record<string, [string, number]> = {
    activity_days: ['device-day', counts.deviceDays],
    activity_hours: ['device-hour', counts.deviceHours],
  }
  return stored.map(({ table, rows, setBytes, diskBytes }) => {
    const [unit, count] = members[table] ?? ['', Number.NaN]
    const each = (setBytes / count).toFixed(2)
    const megabytes = (diskBytes / 1024 ** 2).toFixed(0)
    return `${table}: ${each} B per ${unit} (goal 2.5), ${count} ${unit}s in ${rows} rows, ${megabytes} MB with all that belongs to it`
  })
}
