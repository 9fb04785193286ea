import { type Measured, showMs } from './measure.ts'
import { questions } from './questions.ts'

/** Of each store, by the name of the question. */
export type Results = Map<string, Map<string, Measured>>

/** The first store beside the others. Throws when they do not say the same. */
export function reportQuestions(results: Results): void {
  const [first, ...others] = [...results]
  if (first === undefined) return
  const columns = [
    'goal cold ms',
    'goal warm ms',
    `${first[0]} cold ms`,
    'warm ms',
    ...others.flatMap(([name]) => [`${name} cold ms`, 'warm ms', 'times cold', 'times warm', 'same']),
  ]
  console.log(`\n| question | ${columns.join(' | ')} |`)
  console.log(`|---|${'---:|'.repeat(columns.length)}`)
  const differing: string[] = []
  for (const { name, goalMs } of questions) {
    const own = first[1].get(name)
    if (own === undefined) continue
    const cells = others.flatMap(([store, found]) => {
      const other = found.get(name)
      if (other === undefined) return ['', '', '', '', '']
      if (other.cells !== own.cells) differing.push(`${store}, ${name}`)
      const ratios = [other.coldMs / own.coldMs, other.warmMs / own.warmMs].map((ratio) => ratio.toFixed(1))
      return [showMs(other.coldMs), showMs(other.warmMs), ...ratios, other.cells === own.cells ? 'yes' : 'NO']
    })
    console.log(`| ${[name, 4000, goalMs ?? '', showMs(own.coldMs), showMs(own.warmMs), ...cells].join(' | ')} |`)
  }
  console.log(
    '\nThe goals in ms are for 10M devices and 28 days. At 1M: 20 times faster than rows in PostgreSQL cold, 100 warm.',
  )
  if (differing.length > 0) throw new Error(`the answers differ: ${differing.join('; ')}`)
}
