import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { chooseAccount, handOver, runAs } from '../../src/embedded-postgres/account.ts'
import { findBinaries } from '../../src/embedded-postgres/binaries.ts'

const isRoot = process.getuid?.() === 0

let dir: string

beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'godwit-account-'))
})
afterAll(() => rm(dir, { recursive: true, force: true }))

describe.runIf(isRoot)('PostgreSQL under root', () => {
  it('runs when binaries and data are below a folder that only root may enter', async () => {
    expect((await stat(dir)).mode & 0o777).toBe(0o700)
    const binaries = await findBinaries()
    await cp(path.resolve(binaries.initdb, '../..'), path.join(dir, 'native'), { recursive: true })
    const data = path.join(dir, 'data')
    await mkdir(data)
    const account = await chooseAccount(data)
    if (account === undefined) throw new Error('root needs an account')
    await handOver(data, account)
    const initdb = path.join(dir, 'native', 'bin', path.basename(binaries.initdb))
    const { file, args } = runAs(account, initdb, ['--pgdata', data, '--username=x', '--auth=trust', '--no-sync'])
    await promisify(execFile)(file, args)
    expect((await stat(path.join(data, 'PG_VERSION'))).uid).toBe(account.uid)
  })
})
