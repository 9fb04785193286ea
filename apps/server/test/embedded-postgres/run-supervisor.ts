// A process of its own around the supervisor, for the tests to kill: prints the database as a line of JSON and waits.
import { startEmbeddedPostgres } from '../../src/embedded-postgres/index.ts'
import { silentLog } from './silent-log.ts'

const [, , dataDir = '', durable] = process.argv
const database = await startEmbeddedPostgres({ dataDir, log: silentLog, durable: durable === 'durable' })
console.log(JSON.stringify({ connectionString: database.connectionString, adopted: database.adopted }))
setInterval(() => {}, 60_000)
