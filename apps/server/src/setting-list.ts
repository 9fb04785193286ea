import { z } from 'zod'

/** A setting that is a list, separated by commas. */
export const List = z.string().transform(splitList)

export function splitList(value: string): string[] {
  return value
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '')
}
