import { cpus } from 'node:os'
import { parseArgs } from 'node:util'
import { closeOpened } from '../closing.ts'
import { formatDetails, formatTable } from './format.ts'
import { createReport, isBroken, type Row, type Scenario } from './scenario.ts'
import { scenarios } from './scenarios/index.ts'

/**
 * Does to a running service what machines and networks do, and checks that nothing that it acknowledged is lost and no
 * device is told anything wrong. Ends with 1 when a guarantee was broken.
 *
 *   npm run test:faults -- [scenario…] [--minutes 0.3] [--rounds 5]
 */
const { values: options, positionals: names } = parseArgs({
  options: { minutes: { type: 'string', default: '0.3' }, rounds: { type: 'string', default: '5' } },
  allowPositionals: true,
})

const unknown = names.filter((name) => !scenarios.some((scenario) => scenario.name === name))
if (unknown.length > 0) {
  console.error(
    `There is no scenario ${unknown.join(', ')}. There are: ${scenarios.map(({ name }) => name).join(', ')}`,
  )
  process.exit(2)
}
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => closeOpened().then(() => process.exit(1)))
}
console.log(`Node ${process.version}, ${cpus().length} × ${cpus()[0]?.model ?? 'CPU'}`)
console.log(
  `npm run test:faults -- ${[...names, `--minutes ${options.minutes} --rounds ${options.rounds}`].join(' ')}\n`,
)
const rows: Row[] = []
for (const scenario of scenarios) {
  if (names.length > 0 && !names.includes(scenario.name)) continue
  rows.push(await runScenario(scenario))
  console.error(formatTable(rows.slice(-1)))
  console.error(formatDetails(rows.slice(-1)))
}
console.log(formatTable(rows))
console.log(formatDetails(rows))
process.exit(rows.some(isBroken) ? 1 : 0)

async function runScenario(scenario: Scenario): Promise<Row> {
  const report = createReport(scenario)
  try {
    await scenario.run(report, { minutes: Number(options.minutes), rounds: Number(options.rounds) })
  } catch (error) {
    report.must(false, `it ran to its end: ${error instanceof Error ? (error.stack ?? error.message) : error}`)
  } finally {
    await closeOpened()
  }
  return report.row
}
