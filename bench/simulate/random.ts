/** What a draw is for, so that no two draws of a device depend on each other. */
export const draws = {
  release: 1,
  place: 2,
  updater: 3,
  launchRate: 4,
  firstLaunch: 6,
  nextLaunch: 7,
  boot: 8,
  clientId: 16,
} as const

/**
 * 32 bits of chance that depend on nothing but the arguments. No generator is kept per device, and what one device draws
 * is the same however many others there are and in whatever order the server answers them.
 */
export function draw(seed: number, device: number, purpose: number, step = 0): number {
  const start = scramble((seed ^ Math.imul(purpose, 0x9e3779b1)) >>> 0)
  return scramble((scramble((start + Math.imul(device, 0x85ebca77)) >>> 0) + Math.imul(step, 0xc2b2ae3d)) >>> 0)
}

/** In [0, 1). */
export function drawFraction(seed: number, device: number, purpose: number, step = 0): number {
  return draw(seed, device, purpose, step) / 2 ** 32
}

/** The finalizer of MurmurHash3. One to one, so that no two devices of a seed get the same client_id. */
function scramble(value: number): number {
  let bits = value
  bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b)
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35)
  return (bits ^ (bits >>> 16)) >>> 0
}

/** A random UUID (RFC 9562, section 5.4) of the device. */
export function drawClientId(seed: number, device: number): string {
  let digits = ''
  for (let word = 0; word < 4; word += 1) {
    digits += draw(seed, device, draws.clientId + word)
      .toString(16)
      .padStart(8, '0')
  }
  const variant = '89ab'[Number.parseInt(digits.charAt(16), 16) & 3]
  return `${digits.slice(0, 8)}-${digits.slice(8, 12)}-4${digits.slice(13, 16)}-${variant}${digits.slice(17, 20)}-${digits.slice(20)}`
}

export type Share<Value> = { value: Value; weight: number }

/** `fraction` in [0, 1) picks the index of a share, each as often as it weighs. */
export function pickShare(shares: Share<unknown>[], fraction: number): number {
  let rest = fraction * shares.reduce((sum, { weight }) => sum + weight, 0)
  for (const [index, { weight }] of shares.entries()) {
    rest -= weight
    if (rest < 0) return index
  }
  return shares.length - 1
}
