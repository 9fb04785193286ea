import { type Aggregator, Counter, Gauge, Histogram, type Registry } from 'prom-client'
import { bucketBounds, type Durations } from '../telemetry/durations.ts'

export type Labels = Record<string, string>
export type Sample = { labels?: Labels; value: number }

type Figure = {
  name: string
  help: string
  labelNames?: string[]
  /** How the answers of several processes become one. */
  aggregator?: Aggregator
}

/** A counter that is kept elsewhere, as a plain number: to count here costs more than what is counted. */
export function addCounter(registry: Registry, figure: Figure, read: () => number | Sample[]): void {
  const counter: Counter = new Counter({
    ...figure,
    registers: [registry],
    collect: () => {
      counter.reset()
      const samples = read()
      for (const { labels = {}, value } of typeof samples === 'number' ? [{ value: samples }] : samples)
        counter.inc(labels, value)
    },
  })
}

/** One that cannot be read now is left out: an old figure would look as if all were well. */
export function addGauge(
  registry: Registry,
  figure: Figure,
  read: () => number | Sample[] | Promise<number | Sample[]>,
): void {
  const gauge: Gauge = new Gauge({
    ...figure,
    registers: [registry],
    collect: async () => {
      const samples = await Promise.try(read).catch(() => [])
      gauge.reset()
      // A gauge without labels is 0 after a reset.
      if (figure.labelNames === undefined) gauge.remove()
      for (const { labels = {}, value } of typeof samples === 'number' ? [{ value: samples }] : samples)
        gauge.set(labels, value)
    },
  })
}

export function addHistogram(
  registry: Registry,
  figure: Figure,
  read: () => { labels?: Labels; durations: Durations }[],
): void {
  const histogram: Histogram = new Histogram({ ...figure, buckets: [...bucketBounds], registers: [registry] })
  const { name, help, aggregator = 'sum' } = figure
  const get = async () => {
    const values = read().flatMap(({ labels = {}, durations }) => listValues(name, labels, durations))
    return { name, help, type: 'histogram', aggregator, values } as unknown as Awaited<ReturnType<Histogram['get']>>
  }
  // prom-client takes no counts that were made elsewhere. These two are what it reads a metric by.
  Object.assign(histogram, { get, getForPromString: get })
}

function listValues(name: string, labels: Labels, durations: Durations) {
  const { counts, sum } = durations.read()
  let count = 0
  const buckets = counts.map((inBucket, index) => {
    count += inBucket
    return { metricName: `${name}_bucket`, labels: { le: bucketBounds[index] ?? '+Inf', ...labels }, value: count }
  })
  return [
    ...buckets,
    { metricName: `${name}_sum`, labels, value: sum },
    { metricName: `${name}_count`, labels, value: count },
  ]
}
