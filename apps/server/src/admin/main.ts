import { enableCompileCache } from 'node:module'
import { AppError } from '../errors.ts'
import { buildProgram } from './program.ts'

/** One line for a person. The title of an AppError says nothing that its details do not say better. */
function describeFailure(error: unknown): string {
  if (error instanceof AppError) return error.details ?? error.message
  if (!(error instanceof Error)) return String(error)
  const cause = error.cause instanceof Error ? ` (${error.cause.message})` : ''
  return `${error.message}${cause}`.replaceAll(/\s*\n\s*/g, ' ')
}

enableCompileCache()
try {
  await buildProgram().parseAsync()
} catch (error) {
  process.stderr.write(`error: ${describeFailure(error)}\n`)
  process.exitCode = 1
}
// A service that does not answer keeps its connection, which must not keep a command that is done.
setTimeout(() => process.exit(), 2000).unref()
