import type { Registry } from 'prom-client'
import type { Connections } from '../http/bound-connections.ts'
import type { FairQueue } from '../http/fair-queue.ts'
import { addCounter, addGauge } from './prometheus-figures.ts'

export function registerConnections(
  registry: Registry,
  { connections: { measure }, queue }: { connections: Connections; queue: FairQueue },
): void {
  addGauge(
    registry,
    { name: 'godwit_connections', help: 'Connections of clients, by what they do.', labelNames: ['state'] },
    () => {
      const { open, idle } = measure()
      return [
        { labels: { state: 'idle' }, value: idle },
        { labels: { state: 'busy' }, value: open - idle },
      ]
    },
  )
  addGauge(
    registry,
    { name: 'godwit_connections_max', help: 'Connections that clients may have open at once.' },
    () => measure().max,
  )
  addCounter(
    registry,
    { name: 'godwit_connections_refused_total', help: 'Connections refused because there were too many.' },
    () => measure().refused,
  )
  addCounter(
    registry,
    { name: 'godwit_connections_idle_closed_total', help: 'Idle connections closed to make room for others.' },
    () => measure().closedIdle,
  )
  addGauge(
    registry,
    { name: 'godwit_requests_waiting', help: 'Requests that have arrived and wait until others were served.' },
    () => queue.measure().waiting,
  )
  addCounter(
    registry,
    { name: 'godwit_requests_queued_total', help: 'Requests that had to wait for their turn among addresses.' },
    () => queue.measure().queued,
  )
  addCounter(
    registry,
    { name: 'godwit_requests_shed_total', help: 'Requests refused because too many were waiting.' },
    () => queue.measure().shed,
  )
}
