import type { Log } from '../../src/embedded-postgres/log.ts'

export const silentLog: Log = { info() {}, warn() {}, error() {} }
