import { type ChildProcess, fork } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { atTheEnd } from '../../closing.ts'
import type { Attack, AttackTask } from '../attacker.ts'
import { arch, type Phase, percentile } from '../devices.ts'
import type { Report, Scenario } from '../scenario.ts'
import { openWorld, type World } from '../world.ts'

const attacks: Attack[] = ['slow-loris', 'half-open', 'idle', 'trickle', 'random-apps', 'one-client', 'invalid-tokens']
const attackMs = 8000
const quietMs = 5000
/** Until its connections are open: 10,000 take a while. */
const openingMs: Partial<Record<Attack, number>> = { idle: 8000 }
const times = 5
/** The time slices of a machine with two cores are of this order: below it nothing is held against the service. */
const floorMs = 15

/** Quiet, attack, quiet, attack …: the machine of one moment is compared with itself of the moment before. */
async function attackInTurn(report: Report): Promise<void> {
  const world = await openWorld({ GODWIT_RATE_LIMIT: '6000' })
  for (const attack of attacks) {
    const quiet = world.devices.enter(`quiet before ${attack}`)
    await sleep(quietMs)
    world.devices.enter(`${attack} begins`)
    const attacker = await startAttack(world, attack)
    await sleep(openingMs[attack] ?? 1000)
    const during = world.devices.enter(`${attack} went on`)
    await sleep(attackMs)
    const { open, answers } = attacker.count()
    await attacker.stop()
    world.devices.enter(`${attack} is over`)
    report.mustAnswerAll(during)
    judge(
      report,
      attack,
      quiet,
      during,
      open > 0 ? `${open} connections open` : `${Math.round(answers / ((attackMs + 1000) / 1000))} answers/s`,
    )
    await sleep(1000)
  }
  await world.verify(report)
}

function judge(report: Report, attack: Attack, quiet: Phase, during: Phase, extent: string): void {
  const [before, then] = [percentile(quiet.latenciesMs, 0.99), percentile(during.latenciesMs, 0.99)]
  const ratio = then / before
  report.note(`${attack} (${extent}): p99 ${before.toFixed(1)} → ${then.toFixed(1)} ms, ${ratio.toFixed(1)} times`)
  report.must(ratio < times || then < floorMs, `p99 stays under ${times} times during ${attack}`)
}

async function startAttack({ server, apps, ledger }: World, attack: Attack) {
  const attacker = fork(new URL('../attacker.ts', import.meta.url).pathname)
  const release = apps[0]?.release
  const place = { platform: 'android' as const, arch, channel: 'stable' }
  const check = { ...place, app_id: release?.appId ?? '', release_version: release?.version ?? '' }
  // Whether a flood of its requests was answered, nobody counts.
  const clientId = randomUUID()
  ledger.uncertainChecks.push({ clientId, appId: check.app_id })
  const port = Number(new URL(server.baseUrl).port)
  let last = { open: 0, answers: 0 }
  attacker.on('message', (message) => {
    last = message as typeof last
  })
  attacker.send({ attack, port, check: { ...check, client_id: clientId } } satisfies AttackTask)
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
