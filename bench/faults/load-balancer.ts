import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { access, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { findFreePort } from '../../apps/server/src/embedded-postgres/launch.ts'
import { atTheEnd } from '../closing.ts'

/** Where Debian puts it. */
const haproxy = '/usr/sbin/haproxy'

export async function hasLoadBalancer(): Promise<boolean> {
  return await access(haproxy).then(
    () => true,
    () => false,
  )
}

/**
 * HAProxy with nothing but health checks: a request is passed to another server only when its connection was refused,
 * so nobody has got it. Whatever else goes wrong with a request is the client's to see.
 */
export async function startLoadBalancer(folder: string, targetPorts: number[]): Promise<{ baseUrl: string }> {
  const port = await findFreePort()
  const file = join(folder, 'haproxy.cfg')
  const servers = targetPorts.map((target, index) => `  server godwit${index} 127.0.0.1:${target} check`)
  await writeFile(
    file,
    `global
  maxconn 4000
defaults
  mode http
  timeout connect 2s
  timeout client 60s
  timeout server 60s
  timeout check 2s
  option redispatch 1
frontend all
  bind 127.0.0.1:${port}
  default_backend godwit
backend godwit
  balance roundrobin
  option httpchk GET /readyz
  default-server inter 200ms fall 2 rise 1
${servers.join('\n')}
`,
  )
  const child = spawn(haproxy, ['-f', file], { stdio: ['ignore', 'ignore', 'ignore'] })
  atTheEnd(() => end(child))
  return { baseUrl: `http://127.0.0.1:${port}` }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGTERM')
  await once(child, 'exit')
}
