import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { lchown, readdir } from 'node:fs/promises'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import {
  canQuery,
  killAndWait,
  listProcessesIn,
  listUnfinished,
  makeFolder,
  makePreparedFolder,
  makeZombie,
  query,
  readPostmasterPid,
  spawnSupervisor,
  start,
  startElsewhere,
  waitFor,
} from './harness.ts'

// What another process left behind is found through /proc. The supervisor itself has no such limit.
describe.skipIf(process.platform !== 'linux')('startEmbeddedPostgres', () => {
  describe('starting and stopping', () => {
    it('makes a database that the next start finds again', async () => {
      const folder = makeFolder()
      const first = await start(folder, { durable: true })
      await query(first.connectionString, 'create table t as select 1 as n')
      await first.stop()

      const second = await start(folder, { durable: true })
      expect(await query(second.connectionString, 'select n from t')).toEqual([{ n: 1 }])
      expect(second.adopted).toBe(false)
      expect(await query(second.connectionString, 'show fsync')).toEqual([{ fsync: 'on' }])
    })

    it('compares by code point and knows the letters of Unicode', async () => {
      const { connectionString } = await start(makeFolder())
      expect(await query(connectionString, `select upper('é') as letter, 'Z' < 'a' as ordered`)).toEqual([
        { letter: 'É', ordered: true },
      ])
    })

    it('leaves no process behind, however often it is stopped', async () => {
      const folder = await makePreparedFolder()
      const database = await start(folder)
      expect(listProcessesIn(folder)).not.toEqual([])
      await Promise.all([database.stop(), database.stop()])
      await database.stop()
      expect(listProcessesIn(folder)).toEqual([])
    })

    it('cuts off clients that are still connected when it stops', async () => {
      const folder = await makePreparedFolder()
      const database = await start(folder)
      const sleeping = query(database.connectionString, 'select pg_sleep(60)').catch((error: Error) => error)
      await waitFor('the client to be connected', async () => {
        const rows = await query(
          database.connectionString,
          `select 1 from pg_stat_activity where query = 'select pg_sleep(60)'`,
        )
        return rows.length === 1
      })
      await database.stop()
      expect(await sleeping).toBeInstanceOf(Error)
      expect(listProcessesIn(folder)).toEqual([])
    })

    it('runs in a session of its own, out of reach of Ctrl-C in the terminal', async () => {
      const folder = await makePreparedFolder()
      await start(folder)
      const pid = readPostmasterPid(folder)
      const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ')
      expect(Number(fields?.[3])).toBe(pid)
    })

    it('works below folders that only their owner may enter, at a long path', async () => {
      const parent = makeFolder()
      chmodSync(parent, 0o700)
      const folder = path.join(parent, 'a folder'.repeat(10), 'data'.repeat(20))
      mkdirSync(path.dirname(folder), { mode: 0o700 })
      const { connectionString } = await start(folder)
      expect(await canQuery(connectionString)).toBe(true)
    })

    it('keeps the password and the log to their owner', async () => {
      const folder = makeFolder()
      await start(folder)
      expect(statSync(path.join(folder, 'password')).mode & 0o777).toBe(0o600)
      expect(statSync(path.join(folder, 'postgres.log')).mode & 0o777).toBe(0o600)
    })

    it('begins the log again when it has become long', async () => {
      const folder = await makePreparedFolder()
      writeFileSync(path.join(folder, 'postgres.log'), 'x'.repeat(9_000_000))
      await start(folder)
      expect(statSync(path.join(folder, 'postgres.log')).size).toBeLessThan(10_000)
      expect(statSync(path.join(folder, 'postgres.log.1')).size).toBe(9_000_000)
    })

    it('says what PostgreSQL said when it cannot start', async () => {
      const folder = await makePreparedFolder()
      await (await start(folder)).stop()
      writeFileSync(path.join(folder, 'cluster', 'PG_VERSION'), '12\n')
      await expect(start(folder)).rejects.toThrow(/incompatible with server/)
      expect(listProcessesIn(folder)).toEqual([])
    })
  })

  describe('two processes on one folder', () => {
    it('refuses the second within seconds and names the folder', async () => {
      const folder = await makePreparedFolder()
      const other = await startElsewhere(folder)
      const startedAt = Date.now()
      await expect(start(folder)).rejects.toThrow(`Another Godwit process is using the embedded database in ${folder}`)
      expect(Date.now() - startedAt).toBeLessThan(4_000)
      expect(await canQuery(other.connectionString)).toBe(true)
    })

    it('lets one of two win a first start at the same moment', async () => {
      const folder = makeFolder()
      const outcomes = await Promise.allSettled([start(folder), start(folder)])
      expect(outcomes.map((outcome) => outcome.status).sort()).toEqual(['fulfilled', 'rejected'])
    })
  })

  describe('after a crash', () => {
    it('adopts the postmaster of a process that was killed, with everything committed', async () => {
      const folder = await makePreparedFolder()
      const killed = await startElsewhere(folder)
      await query(killed.connectionString, 'create table t as select 1 as n')
      const pid = readPostmasterPid(folder)
      await killed.kill()

      const database = await start(folder)
      expect(database.adopted).toBe(true)
      expect(database.connectionString).toBe(killed.connectionString)
      expect(readPostmasterPid(folder)).toBe(pid)
      expect(await query(database.connectionString, 'select n from t')).toEqual([{ n: 1 }])
      await database.stop()
      expect(listProcessesIn(folder)).toEqual([])
    })

    it('replaces a running postmaster that has other settings', async () => {
      const folder = await makePreparedFolder()
      const killed = await startElsewhere(folder)
      await killed.kill()
      const database = await start(folder, { durable: true })
      expect(database.adopted).toBe(false)
      expect(await query(database.connectionString, 'show fsync')).toEqual([{ fsync: 'on' }])
    })

    it('restarts a postmaster that was killed, on the same connection string', async () => {
      const folder = await makePreparedFolder()
      const { connectionString } = await start(folder, { durable: true })
      await query(connectionString, 'create table t as select 1 as n')
      // Twice, and with a client inside, whose backend holds the shared memory for a while longer.
      for (const _ of [1, 2]) {
        const inside = query(connectionString, 'select pg_sleep(60)').catch(() => {})
        const pid = readPostmasterPid(folder)
        process.kill(pid, 'SIGKILL')
        await waitFor('PostgreSQL to be back', () => canQuery(connectionString))
        expect(readPostmasterPid(folder)).not.toBe(pid)
        await inside
      }
      expect(await query(connectionString, 'select n from t')).toEqual([{ n: 1 }])
    })

    it('does not wait for a calculation of a postmaster that was killed', async () => {
      const folder = await makePreparedFolder()
      const { connectionString } = await start(folder)
      const inside = query(connectionString, 'do $$ begin loop end loop; end $$').catch(() => {})
      await waitFor('the calculation', async () => {
        const rows = await query(connectionString, `select 1 from pg_stat_activity where query like 'do %'`)
        return rows.length === 1
      })
      process.kill(readPostmasterPid(folder), 'SIGKILL')
      await inside
      await waitFor('PostgreSQL to be back', () => canQuery(connectionString))
    })

    it('restarts an adopted postmaster that was killed', async () => {
      const folder = await makePreparedFolder()
      await (await startElsewhere(folder)).kill()
      const { connectionString, adopted } = await start(folder)
      expect(adopted).toBe(true)
      process.kill(readPostmasterPid(folder), 'SIGKILL')
      await waitFor('the postmaster to end', async () => !(await canQuery(connectionString)))
      await waitFor('PostgreSQL to be back', () => canQuery(connectionString))
    })

    it('stops for good while a restart is under way', async () => {
      const folder = await makePreparedFolder()
      const database = await start(folder)
      process.kill(readPostmasterPid(folder), 'SIGKILL')
      await waitFor('the postmaster to end', async () => !(await canQuery(database.connectionString)))
      await database.stop()
      await waitFor('the orphaned backends to end', () => listProcessesIn(folder).length === 0)
      expect(await canQuery(database.connectionString)).toBe(false)
    })

    it('starts after both it and its postmaster were killed', async () => {
      const folder = await makePreparedFolder()
      const killed = await startElsewhere(folder, 'durable')
      await query(killed.connectionString, 'create table t as select 1 as n')
      const pid = readPostmasterPid(folder)
      await killed.kill()
      process.kill(pid, 'SIGKILL')

      const database = await start(folder, { durable: true })
      expect(database.adopted).toBe(false)
      expect(await query(database.connectionString, 'select n from t')).toEqual([{ n: 1 }])
    })

    it('starts after a kill in the middle of initdb, and removes the remains', async () => {
      const folder = makeFolder()
      const child = spawnSupervisor(folder)
      await waitFor('initdb to write', () => {
        const [unfinished] = listUnfinished(folder)
        return unfinished !== undefined && readdirSync(path.join(folder, unfinished)).includes('base')
      })
      await killAndWait(child)
      expect(listUnfinished(folder)).toHaveLength(1)

      const { connectionString } = await start(folder)
      expect(await canQuery(connectionString)).toBe(true)
      expect(listUnfinished(folder)).toEqual([])
    })

    it('makes the database when a crash came between the cluster and it', async () => {
      const folder = await makePreparedFolder()
      const first = await start(folder)
      await query(first.connectionString.replace(/godwit$/, 'postgres'), 'drop database godwit')
      await first.stop()
      const second = await start(folder)
      expect(await canQuery(second.connectionString)).toBe(true)
    })

    it('is not misled by a pid file that names something else, a zombie, or nothing', async () => {
      const folder = await makePreparedFolder()
      await (await start(folder)).stop()
      for (const content of [`${process.pid}\n`, `${await makeZombie()}\n`, '4194303\n', '']) {
        writeFileSync(path.join(folder, 'cluster', 'postmaster.pid'), content)
        const database = await start(folder)
        expect(await canQuery(database.connectionString)).toBe(true)
        await database.stop()
      }
    })

    it('names the folder and the process when a postmaster neither ends nor answers', async () => {
      const folder = await makePreparedFolder()
      const killed = await startElsewhere(folder)
      await killed.kill()
      const pid = readPostmasterPid(folder)
      process.kill(pid, 'SIGSTOP')
      const starting = start(folder, { startTimeoutMs: 100 })
      await expect(starting).rejects.toThrow(`The embedded PostgreSQL in ${folder}/cluster did not start within 100 ms`)
      await expect(starting).rejects.toThrow(`stop process ${pid}`)

      process.kill(pid, 'SIGCONT')
      expect((await start(folder)).adopted).toBe(true)
    })

    it('asks for the password file when only that is lost', async () => {
      const folder = await makePreparedFolder()
      await (await start(folder)).stop()
      rmSync(path.join(folder, 'password'))
      await expect(start(folder)).rejects.toThrow(`password file ${folder}/password is not`)
    })

    it.skipIf(process.getuid?.() !== 0)('takes over a cluster that root restored from a backup', async () => {
      const folder = await makePreparedFolder()
      await (await start(folder)).stop()
      const cluster = path.join(folder, 'cluster')
      await lchown(cluster, 0, 0)
      for (const entry of await readdir(cluster, { recursive: true })) await lchown(path.join(cluster, entry), 0, 0)
      expect(await canQuery((await start(folder)).connectionString)).toBe(true)
    })
  })
})
