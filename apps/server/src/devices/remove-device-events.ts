import type { Db } from '../db/connection.ts'
import { deleteDeviceEvents } from './queries.ts'

/** Events that one statement removes: it must end well before a statement is given up. */
const batchSize = 10_000

/** Removes what devices of a deleted app reported: millions of rows, which no single statement should remove. */
export async function removeDeviceEvents(db: Db, input: { appId: string }): Promise<void> {
  while ((await deleteDeviceEvents(db, { appId: input.appId, limit: batchSize })) === batchSize);
}
