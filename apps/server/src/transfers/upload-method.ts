import type { UploadMethod } from '@godwit/contract'

const firstResumable = [1, 6, 111] as const

/** Resumable for command line clients that know the word; older ones and unknown clients send multipart. */
export function chooseUploadMethod(cliVersion: string | undefined): UploadMethod {
  const match = /^(\d{1,9})\.(\d{1,9})\.(\d{1,9})/.exec(cliVersion ?? '')
  if (match === null) return 'multipart'
  const version = match.slice(1).map(Number)
  const difference = firstResumable.map((part, index) => (version[index] ?? 0) - part).find((step) => step !== 0) ?? 0
  return difference >= 0 ? 'resumable' : 'multipart'
}
