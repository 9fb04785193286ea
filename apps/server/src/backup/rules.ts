/** More than these would only be more of the same. */
const maxProblems = 20

/** Each table after those that it refers to; otherwise in the order given. */
export function orderByReferences(tables: string[], references: { from: string; to: string }[]): string[] {
  const ordered = new Set<string>()
  const waiting = new Set(tables)
  while (waiting.size > 0) {
    const ready = [...waiting].filter((table) => references.every(({ from, to }) => from !== table || !waiting.has(to)))
    if (ready.length === 0) throw new Error(`these tables refer to each other: ${[...waiting].join(', ')}`)
    for (const table of ready) {
      ordered.add(table)
      waiting.delete(table)
    }
  }
  return [...ordered]
}

/** A line for each, in an order that does not depend on which was seen first. */
export function listProblems(problems: string[]): string {
  const lines = problems
    .toSorted()
    .slice(0, maxProblems)
    .map((problem) => `\n  ${problem}`)
  const more = problems.length > maxProblems ? `\n  and ${problems.length - maxProblems} more` : ''
  return `${lines.join('')}${more}`
}

/** Entries of a folder that a backup did not make. Those with a dot belong to the system, as does `lost+found`. */
export function listForeignEntries(names: string[]): string[] {
  return names.filter((name) => !/^(\..*|lost\+found|blobs|database-[0-9a-z]+|manifest\.json(\.part)?)$/.test(name))
}
