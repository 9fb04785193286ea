/** The shortest first, and of those the first by name: what lies deeper belongs to something else. */
export function comparePaths(left: string, right: string): number {
  if (left.length !== right.length) return left.length - right.length
  return left < right ? -1 : Number(left > right)
}
