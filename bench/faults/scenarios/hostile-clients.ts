import { type ChildProcess, fork } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { atTheEnd } from '../../closing.ts'
import type { Attack, AttackTask } from '../attacker.ts'
import { arch, percentile } from '../devices.ts'
import { busyMs, type Report, type Scenario, slowerTimes } from '../scenario.ts'
import { openWorld, type World } from '../world.ts'

const attacks: Attack[] = [
  'slow-loris',
  'half-open',
  'idle',
  'trickle',
  'random-apps',
  'one-app',
  'one-client',
  'invalid-tokens',
]
const attackMs = 6000
/** Enough that none comes to its limit. */
const hostileClientCount = 2000
const quietMs = 4000
/** Before and after an attacker is killed, which closes all its connections at once. */
const leavingMs = 500
/** Until its connections are open: 10,000 take a while. */
const openingMs: Partial<Record<Attack, number>> = { idle: 8000 }

/** Quiet, attack, quiet: the machine of one moment is compared with itself of the moments before and after. */
async function attackInTurn(report: Report): Promise<void> {
  const world = await openWorld({ GODWIT_RATE_LIMIT: '6000' })
  for (const attack of attacks) {
    const before = world.devices.enter(`quiet before ${attack}`)
    await sleep(quietMs)
    world.devices.enter(`${attack} begins`)
    const attacker = await startAttack(world, attack)
    await sleep(openingMs[attack] ?? 1000)
    const begun = attacker.count()
    const during = world.devices.enter(`${attack} went on`)
    await sleep(attackMs)
    const { open, answers } = attacker.count()
    const leaving = world.devices.enter(`${attack} ends`)
    await sleep(leavingMs)
    await attacker.stop()
    await sleep(leavingMs)
    const after = world.devices.enter(`quiet after ${attack}`)
    await sleep(quietMs)
    report.mustAnswerAll(during)
    report.mustAnswerAll(leaving)
    const perSecond = Math.round((answers - begun.answers) / (attackMs / 1000))
    const extent = open > 0 ? `${open} connections open` : `${perSecond} answers/s`
    const quiet = [...before.latenciesMs, ...after.latenciesMs]
    judge(report, { attack, quiet, during: during.latenciesMs, leaving: leaving.latenciesMs, extent })
  }
  await world.verify(report)
}

function judge(
  report: Report,
  found: { attack: Attack; quiet: number[]; during: number[]; leaving: number[]; extent: string },
): void {
  const { attack, quiet, during, leaving, extent } = found
  const [before, then] = [percentile(quiet, 0.99), percentile(during, 0.99)]
  const ratio = then / before
  report.note(
    `${attack} (${extent}): p99 ${before.toFixed(1)} → ${then.toFixed(1)} ms, ${ratio.toFixed(1)} times; ` +
      `when it was cut off, a check took at most ${Math.max(...leaving).toFixed(0)} ms`,
  )
  report.must(ratio < slowerTimes || then < busyMs, `p99 stays under ${slowerTimes} times during ${attack}`)
}

async function startAttack({ server, apps, ledger }: World, attack: Attack) {
  const attacker = fork(new URL('../attacker.ts', import.meta.url).pathname, [], { detached: true })
  const release = apps[0]?.release
  const place = { platform: 'android' as const, arch, channel: 'stable' }
  const check = { ...place, app_id: release?.appId ?? '', release_version: release?.version ?? '' }
  // Whether a flood of its requests was answered, nobody counts.
  const clientIds = Array.from({ length: hostileClientCount }, () => randomUUID())
  ledger.uncertainChecks.push(...clientIds.map((clientId) => ({ clientId, appId: check.app_id })))
  const port = Number(new URL(server.baseUrl).port)
  let last = { open: 0, answers: 0 }
  attacker.on('message', (message) => {
    last = message as typeof last
  })
  attacker.send({ attack, port, check, clientIds } satisfies AttackTask)
  const stop = () => end(attacker)
  atTheEnd(stop)
  return { count: () => last, stop }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGKILL')
  await once(child, 'exit')
}

export const hostileClients: Scenario = {
  name: 'hostile-clients',
  title: 'slow, silent, half-open and idle connections, and floods of checks',
  run: attackInTurn,
}
