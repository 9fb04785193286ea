import { accessSync, constants } from 'node:fs'
import { lchown, readdir, readFile, stat } from 'node:fs/promises'
import path from 'node:path'

/** The account that PostgreSQL runs as when this process is root, which PostgreSQL refuses to be. */
export type Account = { uid: number; gid: number; setpriv: string }

export type Command = { file: string; args: string[] }

/** Undefined when PostgreSQL can run as the current user. */
export async function chooseAccount(clusterDir: string): Promise<Account | undefined> {
  if (process.getuid?.() !== 0) return undefined
  const setpriv = findSetpriv()
  // A cluster made by an ordinary user stays that user's, so that one start with sudo does not lock them out.
  const owner = await stat(clusterDir).catch(() => undefined)
  if (owner && owner.uid !== 0) return { uid: owner.uid, gid: owner.gid, setpriv }

  const lines = (await readFile('/etc/passwd', 'utf8')).split('\n').map((line) => line.split(':'))
  const entry = lines.find(([name]) => name === 'postgres') ?? lines.find(([name]) => name === 'nobody')
  if (!entry)
    throw new Error(`PostgreSQL does not run as root, and there is no account "postgres" or "nobody". ${advice}`)
  const account = { uid: Number(entry[2]), gid: Number(entry[3]), setpriv }
  if (owner) await handOver(clusterDir, account)
  return account
}

/** The folder with everything in it: a cluster that root restored from a backup belongs to root, and PostgreSQL wants its own. */
export async function handOver(folder: string, account: Account): Promise<void> {
  await lchown(folder, account.uid, account.gid)
  for (const entry of await readdir(folder, { recursive: true })) {
    await lchown(path.join(folder, entry), account.uid, account.gid)
  }
}

/**
 * The account keeps one power of root, to pass folders that only root may enter: the data folder, its parents and
 * node_modules are often 0700. CAP_DAC_READ_SEARCH would be less, but containers do not grant it by default. access(2),
 * by which initdb and pg_ctl find each other, ignores the power of an account that is not root unless no_setuid_fixup is set.
 */
export function runAs(account: Account | undefined, file: string, args: string[]): Command {
  if (!account) return { file, args }
  const { uid, gid, setpriv } = account
  const identity = ['--reuid', String(uid), '--regid', String(gid), '--clear-groups']
  const power = ['--securebits', '+no_setuid_fixup', '--inh-caps', '+dac_override', '--ambient-caps', '+dac_override']
  return { file: setpriv, args: [...identity, ...power, file, ...args] }
}

const advice = 'Run this service as another user, or set DATABASE_URL to a PostgreSQL server of your own.'

function findSetpriv(): string {
  // Absolute, because root should not run whatever PATH finds first.
  for (const folder of ['/usr/bin', '/bin', '/usr/sbin', '/sbin', '/run/current-system/sw/bin']) {
    const file = path.join(folder, 'setpriv')
    try {
      accessSync(file, constants.X_OK)
      return file
    } catch {
      // Not here.
    }
  }
  throw new Error(`PostgreSQL does not run as root, and setpriv (util-linux) is not installed to leave root. ${advice}`)
}
