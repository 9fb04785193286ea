import type { Scenario } from '../scenario.ts'
import { backupKilled } from './backup-killed.ts'
import { blobDisk } from './blob-disk-gone.ts'
import { bucketGone } from './bucket-gone.ts'
import { databaseBlackHoled, databaseStopped, databaseUnplugged } from './database-gone.ts'
import { diskFull } from './disk-full.ts'
import { hostileClients } from './hostile-clients.ts'
import { killedAnywhere, killedAtFirstStart } from './kill-anywhere.ts'
import { killed, startedTwice } from './killed.ts'
import { rollingRestart } from './rolling-restart.ts'
import { startedWithoutDatabase } from './start-without-database.ts'
import { twoInstances } from './two-instances.ts'

export const scenarios: Scenario[] = [
  databaseStopped,
  databaseBlackHoled,
  databaseUnplugged,
  ...startedWithoutDatabase,
  ...blobDisk,
  ...bucketGone,
  ...diskFull,
  killedAnywhere,
  killedAtFirstStart,
  backupKilled,
  killed,
  startedTwice,
  ...twoInstances,
  rollingRestart,
  hostileClients,
]
