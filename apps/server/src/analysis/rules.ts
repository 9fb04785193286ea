import { ReleasePlatform } from '@godwit/contract'

/** The archives that say something of the app, by `arch` of their artifacts, the most telling first. */
const primaryArches = {
  android: ['aab', 'apk', 'aar'],
  ios: ['xcarchive', 'ipa', 'runner', 'xcframework'],
  macos: ['app'],
  linux: ['bundle'],
  windows: ['win_archive'],
} as const satisfies Record<ReleasePlatform, readonly string[]>

export const analyzedPlatforms = ReleasePlatform.options.map((platform) => ({
  platform,
  arches: primaryArches[platform],
}))

/** The artifact that stands for a release on a platform. undefined: none of them says anything of the app. */
export function choosePrimaryArtifact<Artifact extends { arch: string }>(
  platform: ReleasePlatform,
  artifacts: Artifact[],
): Artifact | undefined {
  for (const arch of primaryArches[platform]) {
    const artifact = artifacts.find((each) => each.arch === arch)
    if (artifact !== undefined) return artifact
  }
  return undefined
}

/** Whether the archive is one of those. */
export function canAnalyze(platform: ReleasePlatform, arch: string): boolean {
  return (primaryArches[platform] as readonly string[]).includes(arch)
}
