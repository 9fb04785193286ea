import { readRow, withClient } from './database.ts'
import { describe, type Finding } from './finding.ts'

const check = 'replica'
const lagWarningBytes = 16 * 1024 ** 2

/** Whether it is a standby of this database, and how far it is behind. */
export async function checkReplica(replicaUrl: string, connectionString: string): Promise<Finding[]> {
  try {
    const primary = await withClient(connectionString, (client) =>
      readRow<{ id: string; lsn: string }>(
        client,
        'select system_identifier::text as id, pg_current_wal_lsn()::text as lsn from pg_control_system()',
      ),
    )
    const replica = await withClient(replicaUrl, (client) =>
      readRow<{ id: string; is_standby: boolean; lag_bytes: string | null }>(
        client,
        `select system_identifier::text as id, pg_is_in_recovery() as is_standby,
          greatest(0, pg_wal_lsn_diff('${primary.lsn}', pg_last_wal_replay_lsn())) as lag_bytes from pg_control_system()`,
      ),
    )
    return [judge({ ...replica, isOfThis: replica.id === primary.id })]
  } catch (error) {
    const mend = 'See that the standby of DATABASE_REPLICA_URL runs. Until then all is read of the primary.'
    return [{ check, result: 'warning', found: `the replica cannot be used: ${describe(error)}`, mend }]
  }
}

function judge(replica: { isOfThis: boolean; is_standby: boolean; lag_bytes: string | null }): Finding {
  if (!replica.isOfThis || !replica.is_standby) {
    const found = replica.isOfThis ? 'it is no standby, and not read' : 'it is a replica of another database'
    return { check, result: 'failure', found, mend: 'Let DATABASE_REPLICA_URL name a standby of DATABASE_URL.' }
  }
  const lagBytes = Number(replica.lag_bytes ?? 0)
  const found = `it is ${lagBytes} bytes behind`
  if (lagBytes < lagWarningBytes) return { check, result: 'ok', found }
  return { check, result: 'warning', found, mend: 'See what keeps it: the primary is read in its place.' }
}
