import { execFile } from 'node:child_process'
import { access } from 'node:fs/promises'
import { promisify } from 'node:util'
import { atTheEnd } from '../closing.ts'

const run = promisify(execFile)
/** Where Debian puts it. */
const iptables = '/usr/sbin/iptables'

export async function canDropPackets(): Promise<boolean> {
  if (process.getuid?.() !== 0) return false
  return await access(iptables).then(
    () => true,
    () => false,
  )
}

/** No packet to or from this port of the loopback arrives any more, as behind a cable that was pulled. Returns the end of it. */
export async function dropPackets(port: number): Promise<() => Promise<void>> {
  const rules = ['--dport', '--sport'].map((side) => [
    'INPUT',
    '-i',
    'lo',
    '-p',
    'tcp',
    side,
    String(port),
    '-j',
    'DROP',
  ])
  const remove = async () => {
    for (const rule of rules.splice(0)) await run(iptables, ['-D', ...rule]).catch(() => undefined)
  }
  atTheEnd(remove)
  for (const rule of rules) await run(iptables, ['-I', ...rule])
  return remove
}
