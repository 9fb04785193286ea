/** Tells a person what was done, on standard error: standard output has only what was asked for. */
export function say(message: string): void {
  process.stderr.write(`${message}\n`)
}
