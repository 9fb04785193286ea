import { ReleasePlatform } from '@godwit/contract'
import { describe, expect, it } from 'vitest'
import { canAnalyze, choosePrimaryArtifact } from '../../src/analysis/rules.ts'

const artifacts = (...arches: string[]) => arches.map((arch) => ({ arch }))

describe('the artifact that stands for a release', () => {
  it.each([
    ['android', ['aarch64', 'aab', 'apk', 'android_supplement'], 'aab'],
    ['android', ['aarch64', 'apk', 'aar'], 'apk'],
    ['android', ['aar', 'aar_supplement', 'arm'], 'aar'],
    ['ios', ['runner', 'ipa', 'xcarchive'], 'xcarchive'],
    ['ios', ['runner', 'ipa'], 'ipa'],
    ['ios', ['ios_supplement', 'runner'], 'runner'],
    ['ios', ['xcframework'], 'xcframework'],
    ['macos', ['macos_supplement', 'app'], 'app'],
    ['linux', ['linux_supplement', 'bundle'], 'bundle'],
    ['windows', ['win_archive', 'windows_supplement'], 'win_archive'],
  ] as const)('for %s of %j is %s', (platform, arches, chosen) => {
    expect(choosePrimaryArtifact(platform, artifacts(...arches))).toEqual({ arch: chosen })
  })

  it('is none where no artifact says anything', () => {
    expect(choosePrimaryArtifact('android', artifacts('aarch64', 'arm', 'xcarchive'))).toBeUndefined()
    for (const platform of ReleasePlatform.options) {
      expect(choosePrimaryArtifact(platform, [])).toBeUndefined()
      expect(canAnalyze(platform, 'aarch64')).toBe(false)
    }
  })
})
