import { readFileSync } from 'node:fs'
import { openArchive } from '../../../src/analyzer/open-archive.ts'
import { buildIcns, buildPng, fill } from '../apple/build-images.ts'
import { buildXmlPlist, iosFields, macosFields } from '../apple/build-plists.ts'
import { buildElf, buildFat, buildMach, buildPe, machTypes } from '../executables/build-executables.ts'
import { openPieces, type ZipInput } from './build-zip.ts'

/** The files of one archive for each format, as small as they can be and still be an app. */
export async function readSamples() {
  const xcarchive = await readFixture('real/ios-xcarchive.zip')
  return {
    AAB: await readFixture('real/aab-basic.aab'),
    APK: await readFixture('real/real-tc-debug.apk'),
    AAR: library,
    xcarchive,
    IPA: xcarchive.flatMap(({ name, content }) => {
      const [, path] = /\/Applications\/(.*)$/s.exec(name) ?? []
      return path === undefined ? [] : [{ name: `Payload/${path}`, content }]
    }),
    xcframework,
    macOS: macos,
    Linux: toInputs({
      atlas: buildElf(),
      'lib/libapp.so': buildElf(),
      'data/flutter_assets/version.json': version,
    }),
    Windows: toInputs({
      'atlas.exe': buildPe({ icons: [buildPng(fill(256, [200, 30, 30, 255]))] }),
      'flutter_windows.dll': buildPe(),
      'data/app.so': buildElf(),
      'data/flutter_assets/version.json': version,
    }),
  }
}

export type SampleName = keyof Awaited<ReturnType<typeof readSamples>>

/** An entry of which the content is known. */
export type Sample = { name: string; content: Buffer }

const version = JSON.stringify({ app_name: 'atlas', version: '1.2.3', build_number: '7', package_name: 'atlas_notes' })

const manifest = `<?xml version="1.0" encoding="utf-8"?>
<manifest xmlns:android="http://schemas.android.com/apk/res/android" package="com.example.module">
  <uses-sdk android:minSdkVersion="24" android:targetSdkVersion="35" />
</manifest>`

const library = toInputs({
  'AndroidManifest.xml': manifest,
  'classes.jar': 'PK',
  'jni/arm64-v8a/libapp.so': buildElf({ machine: 183 }),
})

const macos = toInputs({
  'Atlas.app/Contents/Info.plist': buildXmlPlist(macosFields),
  'Atlas.app/Contents/MacOS/Atlas': buildFat([{ type: machTypes.x86_64 }, { type: machTypes.arm64 }]),
  'Atlas.app/Contents/Resources/AppIcon.icns': buildIcns([['ic09', buildPng(fill(512, [30, 30, 200, 255]))]]),
})

const xcframework = toInputs({
  'App.xcframework/Info.plist': buildXmlPlist({
    AvailableLibraries: [
      { LibraryIdentifier: 'ios-arm64', LibraryPath: 'App.framework', SupportedArchitectures: ['arm64'] },
    ],
  }),
  'App.xcframework/ios-arm64/App.framework/Info.plist': buildXmlPlist(iosFields),
  'App.xcframework/ios-arm64/App.framework/App': buildMach({ type: machTypes.arm64 }),
})

function toInputs(files: Record<string, Buffer | string>): Sample[] {
  return Object.entries(files).map(([name, content]) => ({ name, content: Buffer.from(content) }))
}

async function readFixture(path: string): Promise<Sample[]> {
  const archive = await openArchive(openPieces([readFileSync(new URL(`../fixtures/${path}`, import.meta.url))]))
  const entries = [...archive.entries.values()]
  return await Promise.all(
    entries.map(async (entry) => ({ name: entry.name, content: await archive.read(entry, 64 * 1024 ** 2) })),
  )
}

/** In a folder of its own. */
export function inFolder(folder: string, inputs: Sample[]): ZipInput[] {
  return inputs.map(({ name, content }) => ({ name: `${folder}/${name}`, content }))
}
