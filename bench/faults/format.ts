import { percentile } from './devices.ts'
import { isBroken, type Row } from './scenario.ts'

const shownProblems = 5

export function formatTable(rows: Row[]): string {
  const head = '| scenario | checks answered | wrong answers | lost acknowledged writes | recovery, s | verdict |'
  return [head, '|---|---:|---:|---:|---|---|', ...rows.map(formatRow)].join('\n')
}

function formatRow(row: Row): string {
  const { scenario, title, answered, wrong, lost, skipped } = row
  const verdict = skipped !== undefined ? 'skipped' : isBroken(row) ? 'BROKEN' : 'kept'
  const figures = [answered.toLocaleString('en'), wrong.length, lost.length, formatRecovery(row.recoveriesMs), verdict]
  return `| ${[`\`${scenario}\`: ${title}`, ...figures].join(' | ')} |`
}

function formatRecovery(recoveriesMs: number[]): string {
  if (recoveriesMs.length === 0) return ''
  const inSeconds = (ms: number) => (ms / 1000).toFixed(1)
  const most = Math.max(...recoveriesMs)
  if (recoveriesMs.length === 1) return inSeconds(most)
  return `${inSeconds(percentile(recoveriesMs, 0.5))}, at most ${inSeconds(most)} (${recoveriesMs.length} times)`
}

export function formatDetails(rows: Row[]): string {
  return rows.map(formatDetailsOf).join('\n')
}

function formatDetailsOf({ scenario, wrong, lost, broken, notes, skipped }: Row): string {
  const list = (kind: string, problems: string[]) =>
    problems.slice(0, shownProblems).map((text) => `- **${kind}**: ${text}`)
  const lines = [
    ...(skipped === undefined ? [] : [`- skipped: ${skipped}`]),
    ...list('broken', broken),
    ...list('wrong', wrong),
    ...list('lost', lost),
    ...notes.map((note) => `- ${note}`),
  ]
  return [`\n\`${scenario}\`:`, ...lines].join('\n')
}
