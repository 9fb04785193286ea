import { createPopulation, type Population, type PopulationOptions } from './devices.ts'
import { createSchedule, type Schedule, type ScheduleOptions } from './schedule.ts'
import { type Counts, createCounts } from './summary.ts'

export type SimulationOptions = PopulationOptions & ScheduleOptions

export type Simulation = {
  population: Population
  schedule: Schedule
  counts: Counts
  /** Unix seconds. */
  startSeconds: number
  /** How far it has come, in seconds after the start. */
  atSeconds: number
}

export function createSimulation(options: SimulationOptions): Simulation {
  return {
    population: createPopulation(options),
    schedule: createSchedule(options),
    counts: createCounts(),
    startSeconds: options.startSeconds,
    atSeconds: 0,
  }
}
