import { Secret, TOTP } from 'otpauth'

const periodSeconds = 30
/** Codes of the step before and after are good too: clocks differ, and people type slowly (RFC 6238 section 5.2). */
const window = 1

/** 160 bits, as RFC 4226 section 4 recommends. */
export const secretBytes = 20

/**
 * The time step that a code belongs to, or undefined when it is wrong, or of a step that was used already: whoever saw
 * a code being typed cannot use it again (RFC 6238 section 5.2).
 */
export function findStep(
  code: string,
  input: { secret: Buffer; lastStep: number | null; now: Date },
): number | undefined {
  const token = code.replaceAll(/\s/g, '')
  if (!/^\d{6}$/.test(token)) return undefined
  const timestamp = input.now.getTime()
  const delta = createTotp(input.secret).validate({ token, timestamp, window })
  if (delta === null) return undefined
  const step = Math.floor(timestamp / 1000 / periodSeconds) + delta
  return input.lastStep !== null && step <= input.lastStep ? undefined : step
}

/** What an authenticator app reads from the picture. SHA-1, six digits and 30 s: the only ones that all apps know. */
export function describeSecret(input: { secret: Buffer; email: string; publicUrl: string }): {
  uri: string
  /** For typing, in groups of four. */
  text: string
} {
  const totp = createTotp(input.secret, { issuer: `Godwit ${new URL(input.publicUrl).hostname}`, label: input.email })
  return { uri: totp.toString(), text: totp.secret.base32.replaceAll(/(.{4})(?=.)/g, '$1 ') }
}

function createTotp(secret: Buffer, names: { issuer?: string; label?: string } = {}): TOTP {
  return new TOTP({
    ...names,
    secret: new Secret({ buffer: new Uint8Array(secret).buffer }),
    algorithm: 'SHA1',
    digits: 6,
    period: periodSeconds,
  })
}
