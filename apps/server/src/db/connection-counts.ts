import type { Config } from '../config.ts'

/** What devices are answered from and what they tell: slow statements of others must not make them wait. */
export const deviceConnections = 4
/** One for what is asked or compacted, and what the loop looks up meanwhile. */
export const countingConnections = 4
/** The making of a partition must not wait for a connection that whoever needs it has. */
export const partitionConnections = 1
/** Of those who read a replica: devices, and the process that counts. */
export const replicaConnections = 4
/** They have no pool: each watches on a connection of its own. */
const watchConnections = { notifications: 1, health: 1 }

type Settings = Pick<Config, 'databaseConnections' | 'roles' | 'workers'>

/** What an instance opens at most: to its database, and to the replica of that if it has one. */
export function countConnections({ databaseConnections, roles, workers }: Settings): {
  primary: number
  replica: number
} {
  const { notifications, health } = watchConnections
  // Only metrics are asked of it and only a worker keeps it: who answers devices alone has no process that counts.
  const isCounting = roles.has('control') || roles.has('worker')
  const counting = countingConnections + partitionConnections + health
  const serving = databaseConnections + deviceConnections + notifications + health
  const readers = isCounting ? 2 : 1
  return {
    primary: workers * (serving + (isCounting ? counting : 0)),
    replica: workers * readers * (replicaConnections + health),
  }
}
