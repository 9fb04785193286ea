import path from 'node:path'

export type Layout = ReturnType<typeof listPaths>

/** Everything the embedded database owns, inside one folder that can be moved or backed up as a whole. */
export function listPaths(dataDir: string) {
  return {
    dataDir,
    clusterDir: path.join(dataDir, 'cluster'),
    /** A cluster is made under this prefix plus a random suffix, and renamed when it is complete. */
    unfinishedPrefix: 'cluster.new-',
    passwordFile: path.join(dataDir, 'password'),
    lockFile: path.join(dataDir, 'lock'),
    logFile: path.join(dataDir, 'postgres.log'),
  }
}
