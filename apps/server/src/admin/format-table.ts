/** Rows in columns, under their names. Names are chosen by users: what could steer a terminal is replaced. */
export function formatTable(rows: Record<string, unknown>[]): string {
  const [first] = rows
  if (first === undefined) return ''
  const names = Object.keys(first)
  const lines = [names, ...rows.map((row) => names.map((name) => formatValue(row[name])))]
  const widths = names.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)))
  const text = lines.map((line) =>
    line
      .map((value, column) => value.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  )
  return `${text.join('\n')}\n`
}

function formatValue(value: unknown): string {
  if (value === null || value === undefined) return '-'
  if (value instanceof Date) return value.toISOString()
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  return String(value).replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '?')
}
