export type Family = { name: string; type: string; help: string; samples: Map<string, number> }

/** A `/metrics` answer, by metric. Samples are named as written: `name{label="value"}`. */
export function parseMetrics(text: string): Map<string, Family> {
  const families = new Map<string, Family>()
  let current: Family | undefined
  for (const line of text.split('\n')) {
    const [, keyword, name = '', rest = ''] = /^# (HELP|TYPE) (\S+) (.*)$/.exec(line) ?? []
    if (keyword === 'HELP') {
      current = { name, type: '', help: rest, samples: new Map() }
      families.set(name, current)
    } else if (keyword === 'TYPE' && current !== undefined) current.type = rest
    else if (line !== '') {
      const [sample = '', value] = line.split(/ (?=\S+$)/)
      current?.samples.set(sample, Number(value))
    }
  }
  return families
}

export async function readMetrics(baseUrl: string): Promise<Map<string, Family>> {
  const response = await fetch(`${baseUrl}/metrics`)
  if (response.status !== 200) throw new Error(`/metrics answered ${response.status}`)
  return parseMetrics(await response.text())
}

export async function readSamples(baseUrl: string): Promise<Record<string, number>> {
  const families = await readMetrics(baseUrl)
  return Object.fromEntries([...families.values()].flatMap(({ samples }) => [...samples]))
}
