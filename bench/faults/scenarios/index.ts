import type { Scenario } from '../scenario.ts'
import { databaseBlackHoled, databaseStopped } from './database-gone.ts'
import { hostileClients } from './hostile-clients.ts'
import { killed, startedTwice } from './killed.ts'

export const scenarios: Scenario[] = [databaseStopped, databaseBlackHoled, killed, startedTwice, hostileClients]
