import { AggregatorRegistry } from 'prom-client'
import type { FromServer, ToServer } from './messages.ts'

/** A process that hangs is left out. */
const patienceMs = 2000

type Asked = { send: (message: ToServer) => void }
type Measured = Extract<FromServer, { measured: number }>
type Round = { missing: Set<Asked>; metrics: object[][]; finish: () => void }

/** Asks every process for its figures and makes one text of them; each has the label `process`. */
export function createFigureCollector(list: () => Asked[]) {
  const rounds = new Map<number, Round>()
  let lastRound = 0
  return {
    take: (from: Asked, { measured, metrics }: Measured) => {
      const round = rounds.get(measured)
      if (!round?.missing.delete(from)) return
      round.metrics.push(metrics)
      if (round.missing.size === 0) round.finish()
    },
    collect: async (): Promise<string> => {
      lastRound += 1
      const id = lastRound
      const asked = list()
      const { promise, resolve } = Promise.withResolvers<void>()
      const round: Round = { missing: new Set(asked), metrics: [], finish: resolve }
      rounds.set(id, round)
      const late = setTimeout(resolve, patienceMs)
      for (const { send } of asked) send({ measure: id })
      await promise
      clearTimeout(late)
      rounds.delete(id)
      return await AggregatorRegistry.aggregate(round.metrics).metrics()
    },
  }
}
