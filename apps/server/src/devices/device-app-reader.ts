import type { Db } from '../db/connection.ts'
import { within } from '../db/database-health.ts'
import { createReplicaReads, type ReplicaReads } from '../db/open-replica.ts'
import { type DeviceApp, findDeviceApp } from './queries.ts'

/** From then on the primary is asked: a change is live within a second, whatever the replica does. */
const replicaPatienceMs = 300

export type DeviceAppReader = {
  /** At least as new as `version`. undefined: there is no such app. */
  read: (appId: string, version: number) => Promise<DeviceApp | undefined>
  /** undefined: there is no replica. */
  measure: () => Readonly<ReplicaReads> | undefined
}

/** Reads what devices are answered from of a replica where that is as new as is known to be needed, else of the primary. */
export function createDeviceAppReader({ db, replica }: { db: Db; replica: Db | undefined }): DeviceAppReader {
  if (replica === undefined) {
    return { read: (appId) => findDeviceApp(db, { appId }), measure: () => undefined }
  }
  const reads = createReplicaReads()

  const readReplica = async (appId: string, version: number): Promise<DeviceApp | undefined> => {
    try {
      const app = await within(replicaPatienceMs, findDeviceApp(replica, { appId }))
      const isUsable = app !== undefined && app.device_version >= version
      reads[isUsable ? 'used' : 'behind'] += 1
      return isUsable ? app : undefined
    } catch {
      // That it is away is logged by who watches it.
      reads.failed += 1
      return undefined
    }
  }
  return {
    // An app that a replica lacks may be new: only the primary knows that it is gone.
    read: async (appId, version) => (await readReplica(appId, version)) ?? (await findDeviceApp(db, { appId })),
    measure: () => reads,
  }
}
