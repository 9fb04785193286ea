import type { ActivityStore } from '../../src/activity/activity-store.ts'

/** Answers as if nothing was recorded, but for what a test says. It has what routes ask, and no more. */
export function createFakeActivityStore(answers: Partial<ActivityStore> = {}): ActivityStore {
  const nothing: Partial<ActivityStore> = {
    countVersions: async () => [],
    countAdoption: async ({ patches, spans }) => patches.map(() => spans.map(() => ({ devices: 0, target: 0 }))),
    countDevices: async ({ spans }) => spans.map(() => ({ devices: 0, groups: [] })),
    countNewDevices: async ({ spans }) => spans.map(() => 0),
    countHourly: async ({ fromMs, toMs }) => Array.from({ length: (toMs - fromMs) / 3_600_000 }, () => 0),
    findFirstTime: async () => undefined,
    compact: async () => undefined,
    importObservations: async () => ({ accepted: 0, duplicates: 0, rejected: [], rejectedCount: 0 }),
    removeDevice: async () => false,
  }
  return { ...nothing, ...answers } as ActivityStore
}
