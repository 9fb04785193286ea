import { limits } from './limits.ts'

/** Control characters, and those that change the direction in which what stands around them is read. */
const unprintable = /[\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu

/** A name as it may be shown; undefined when nothing is left of it. */
export function cleanName(name: string): string | undefined {
  const clean = [...name.toWellFormed().replaceAll(unprintable, ' ').replaceAll(/\s+/gu, ' ').trim()]
  const cut = clean.slice(0, limits.displayNameChars).join('').trim()
  return cut === '' ? undefined : cut
}

/** An identifier or a version: what is longer, or not printable, is neither. */
export function isWord(text: string): boolean {
  return /^[^\s\p{C}]{1,255}$/u.test(text)
}
