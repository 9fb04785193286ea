import { createDurations, type Durations } from '../telemetry/durations.ts'

/** The requests of one route. */
export type RouteDurations = { add: (status: number, seconds: number) => void }

export type RequestDurations = {
  /** `route` is the template, never the path that was asked for: there is no end of those. */
  of: (method: string, route: string) => RouteDurations
  list: () => { method: string; route: string; status: string; durations: Durations }[]
}

/** How long requests took to answer, by route and class of status. */
export function createRequestDurations(): RequestDurations {
  const routes = new Map<string, { method: string; route: string; classes: Durations[] }>()
  const open = (method: string, route: string) => {
    const key = `${method} ${route}`
    const known = routes.get(key) ?? { method, route, classes: [] }
    routes.set(key, known)
    return known.classes
  }
  return {
    of: (method, route) => {
      const classes = open(method, route)
      return {
        add: (status, seconds) => {
          const first = Math.floor(status / 100)
          const durations = classes[first] ?? createDurations()
          classes[first] = durations
          durations.add(seconds)
        },
      }
    },
    list: () =>
      [...routes.values()].flatMap(({ method, route, classes }) =>
        Object.entries(classes).map(([first, durations]) => ({ method, route, status: `${first}xx`, durations })),
      ),
  }
}
