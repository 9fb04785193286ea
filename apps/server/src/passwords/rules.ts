import { dictionary } from '@zxcvbn-ts/language-common'
import { AppError } from '../errors.ts'

const minLength = 12
const maxLength = 128

/** 49,000, in lower case. */
const commonPasswords = new Set(dictionary['passwords-common'].map((password) => password.toLowerCase()))

/**
 * A password in the one form that is hashed (RFC 8265 section 4.2.2, OpaqueString): any space becomes an ASCII one, and
 * composed and decomposed letters are the same (NFC). The same keys pressed on another system then give the same password.
 */
export function preparePassword(password: string): string {
  return password.replaceAll(/\p{Zs}/gu, ' ').normalize('NFC')
}

/** Refuses a new password that is too short, too long or easily guessed. There are no rules about kinds of characters. */
export function checkNewPassword(password: string, account: { email: string }): void {
  const prepared = preparePassword(password)
  const length = [...prepared].length
  if (length < minLength) refuse(`must have at least ${minLength} characters`)
  if (length > maxLength) refuse(`must have at most ${maxLength} characters`)
  if (/\p{Cc}|\p{Cs}/u.test(prepared)) refuse('must not have control characters')
  const lowerCase = prepared.toLowerCase()
  const email = account.email.toLowerCase()
  const localPart = email.slice(0, Math.max(0, email.lastIndexOf('@')))
  if (lowerCase === email || lowerCase === localPart) refuse('must not be your e-mail')
  if (isCommon(lowerCase)) refuse('is one of the most common ones, which are guessed first')
}

/** Only 308 of the list are long enough themselves: also how people make a longer one of a shorter, digits or once more. */
function isCommon(password: string): boolean {
  const beginnings = [0, 1, 2, 3, 4, 5, 6].filter((count) => /^\d*$/.test(password.slice(password.length - count)))
  if (beginnings.some((count) => commonPasswords.has(password.slice(0, password.length - count)))) return true
  const lengths = Array.from({ length: Math.floor(password.length / 2) }, (_, index) => index + 1)
  return lengths
    .filter((length) => password.length % length === 0)
    .map((length) => password.slice(0, length))
    .some((part) => part.repeat(password.length / part.length) === password && commonPasswords.has(part))
}

function refuse(reason: string): never {
  throw new AppError('invalid_request', `password: ${reason}`)
}
