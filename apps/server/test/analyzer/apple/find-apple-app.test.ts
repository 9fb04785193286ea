import { describe, expect, it } from 'vitest'
import { findAppleApp, findXcframework } from '../../../src/analyzer/apple/find-apple-app.ts'

describe('findAppleApp', () => {
  it.each([
    ['Payload/Runner.app/Info.plist', { root: 'Payload/Runner.app', kind: 'ios' }],
    ['Runner.app/Info.plist', { root: 'Runner.app', kind: 'ios' }],
    ['Products/Applications/Runner.app/Info.plist', { root: 'Products/Applications/Runner.app', kind: 'ios' }],
    [
      'R.xcarchive/Products/Applications/R.app/Info.plist',
      { root: 'R.xcarchive/Products/Applications/R.app', kind: 'ios' },
    ],
    ['Atlas Notes.app/Contents/Info.plist', { root: 'Atlas Notes.app', kind: 'macos' }],
    ['Products/Applications/A.app/Contents/Info.plist', { root: 'Products/Applications/A.app', kind: 'macos' }],
    [
      'A.xcarchive/Products/Applications/A.app/Contents/Info.plist',
      { root: 'A.xcarchive/Products/Applications/A.app', kind: 'macos' },
    ],
    ['Contents/Info.plist', { root: '', kind: 'macos' }],
  ])('finds %s', (name, app) => {
    expect(findAppleApp(['META-INF/x', name, 'z'])).toEqual(app)
  })

  it.each([
    'Info.plist',
    'Runner.xcarchive/Info.plist',
    '__MACOSX/Payload/Runner.app/Info.plist',
    '__MACOSX/Payload/Runner.app/._Info.plist',
    'Payload/Runner.app/._Info.plist',
    'Payload/Runner.app/Frameworks/App.framework/Info.plist',
    'Payload/Runner.app/PlugIns/Share.appex/Info.plist',
    'Payload/Runner.app/Watch/Watch.app/Info.plist',
    'Payload/Runner.app/Base.lproj/LaunchScreen.storyboardc/Info.plist',
    'Runner.xcarchive/dSYMs/Runner.app.dSYM/Contents/Info.plist',
    'A.app/Contents/Frameworks/Helper.app/Contents/Info.plist',
    'Payload/Runner.app/Info.plist/x',
    'Payload\\Runner.app\\Info.plist',
    '../Payload/Runner.app/Info.plist',
    '/Payload/Runner.app/Info.plist',
    'payload/Runner.app/Info.plist',
    'Payload/.app/Info.plist/',
  ])('is not led astray by %s', (name) => {
    expect(findAppleApp([name])).toBeUndefined()
  })

  it('takes the shortest path of several, and of those the first by name, in whatever order they stand', () => {
    const names = ['Payload/Bb.app/Info.plist', 'Payload/Aa.app/Info.plist', 'Payload/Runner.app/Info.plist']
    expect(findAppleApp(names)?.root).toBe('Payload/Aa.app')
    expect(findAppleApp(names.toReversed())?.root).toBe('Payload/Aa.app')
    expect(findAppleApp(['Contents/Info.plist', 'A.app/Contents/Info.plist'])?.root).toBe('A.app')
    expect(findAppleApp(['A.app/Contents/Info.plist', 'A.app/Info.plist'])?.kind).toBe('ios')
  })
})

describe('findXcframework', () => {
  it('finds the framework, also in a folder and without one', () => {
    expect(findXcframework(['App.xcframework/Info.plist'])).toBe('App.xcframework')
    expect(findXcframework(['Release/App.xcframework/Info.plist'])).toBe('Release/App.xcframework')
    expect(findXcframework(['Info.plist', 'ios-arm64/App.framework/App'])).toBe('')
  })

  it('takes the one with the code of the app', () => {
    const names = ['A.xcframework', 'App.xcframework', 'Flutter.xcframework'].map(
      (name) => `Release/${name}/Info.plist`,
    )
    expect(findXcframework(names)).toBe('Release/App.xcframework')
    expect(findXcframework(names.toReversed())).toBe('Release/App.xcframework')
  })

  it.each([
    'Info.plist',
    '__MACOSX/App.xcframework/Info.plist',
    'App.xcframework/ios-arm64/App.framework/Info.plist',
    'a/b/c/App.xcframework/Info.plist',
    'Runner.app/Frameworks/App.framework/Info.plist',
  ])('is not led astray by %s', (name) => {
    expect(findXcframework([name])).toBeUndefined()
  })
})
