import { readdirSync, readFileSync } from 'node:fs'
import { analyzeArchive } from '../../apps/server/src/analyzer/analyze-archive.ts'
import { readBinaryTable } from '../../apps/server/src/analyzer/android/binary-table.ts'
import { readBinaryXml } from '../../apps/server/src/analyzer/android/binary-xml.ts'
import { findIcon } from '../../apps/server/src/analyzer/android/find-icon.ts'
import { readProtoTable } from '../../apps/server/src/analyzer/android/proto-table.ts'
import { readProtoXml } from '../../apps/server/src/analyzer/android/proto-xml.ts'
import { resolveAll, resolveValue } from '../../apps/server/src/analyzer/android/resolve.ts'
import { readTextXml } from '../../apps/server/src/analyzer/android/text-xml.ts'
import type { ResourceTable } from '../../apps/server/src/analyzer/android/values.ts'
import { readIcns } from '../../apps/server/src/analyzer/apple/read-icns.ts'
import { readPlist } from '../../apps/server/src/analyzer/apple/read-plist.ts'
import { readPeIcon } from '../../apps/server/src/analyzer/desktop/read-pe-icon.ts'
import { readElf } from '../../apps/server/src/analyzer/executables/read-elf.ts'
import { readMachArchitectures } from '../../apps/server/src/analyzer/executables/read-mach-o.ts'
import { readPe } from '../../apps/server/src/analyzer/executables/read-pe.ts'
import { decodeCgbi } from '../../apps/server/src/analyzer/icons/decode-cgbi.ts'
import { openArchive } from '../../apps/server/src/analyzer/open-archive.ts'
import { buildIcns, buildPng, fill } from '../../apps/server/test/analyzer/apple/build-images.ts'
import { buildBinaryPlist, buildXmlPlist, iosFields } from '../../apps/server/test/analyzer/apple/build-plists.ts'
import { buildZip, openPieces, openZip, sizeOf } from '../../apps/server/test/analyzer/core/build-zip.ts'
import { readSamples, type Sample } from '../../apps/server/test/analyzer/core/sample-archives.ts'
import {
  buildElf,
  buildFat,
  buildMach,
  buildPe,
  machTypes,
} from '../../apps/server/test/analyzer/executables/build-executables.ts'
import { createArchive } from '../../apps/server/test/analyzer/memory-archive.ts'

/** Something that must come to an end with a value or an UnanalyzableError, whatever it is given. */
export type Target = { findSeeds: () => Buffer[] | Promise<Buffer[]>; run: (input: Buffer) => unknown }

const fixtures = new URL('../../apps/server/test/analyzer/fixtures/android/', import.meta.url)

/** What there is of a file in the archives that tools for Android made. */
async function findFiles(name: RegExp): Promise<Buffer[]> {
  const found: Buffer[] = []
  for (const file of readdirSync(fixtures).filter((file) => /\.(aab|apk)$/.test(file))) {
    const archive = await openArchive(openPieces([readFileSync(new URL(file, fixtures))]))
    for (const entry of archive.entries.values()) {
      if (name.test(entry.name)) found.push(await archive.read(entry, 64 * 1024 ** 2))
    }
  }
  return found.filter((bytes) => bytes.length < 64 * 1024)
}

/** Asks for all there may be in the first types of the app, and some by name. */
function lookUp(table: ResourceTable): void {
  for (let type = 0; type < 6; type++) {
    for (let entry = 0; entry < 6; entry++) {
      const id = 0x7f000000 + type * 65_536 + entry
      resolveAll(table, { kind: 'reference', reference: { id } } as never)
      resolveValue(table, { kind: 'reference', reference: { id } } as never)
    }
  }
  resolveValue(table, { kind: 'reference', reference: { id: 0, name: 'string/app_name' } } as never)
}

const executables = () => [
  buildElf(),
  buildElf({ is64: false, isBig: true }),
  buildPe({ icons: [buildPng(fill(32, [1, 2, 3, 255]))] }),
  buildMach({ type: machTypes.arm64 }),
  buildFat([{ type: machTypes.x86_64 }, { type: machTypes.arm64 }]),
  buildFat([{ type: machTypes.x86_64 }], { is64: true }),
]

export const targets: Record<string, Target> = {
  'binary-xml': { findSeeds: () => findFiles(/^(AndroidManifest|res\/.*)\.xml$/), run: readBinaryXml },
  'proto-xml': { findSeeds: () => findFiles(/^base\/.*\.xml$/), run: readProtoXml },
  'text-xml': {
    findSeeds: async () => (await readSamples()).AAR.map(({ content }) => content),
    run: readTextXml,
  },
  'binary-table': { findSeeds: () => findFiles(/^resources\.arsc$/), run: (input) => lookUp(readBinaryTable(input)) },
  'proto-table': { findSeeds: () => findFiles(/^base\/resources\.pb$/), run: (input) => lookUp(readProtoTable(input)) },
  plist: {
    findSeeds: async () => {
      const real = (await readSamples()).xcarchive.filter(({ name }) => name.endsWith('Info.plist'))
      return [buildXmlPlist(iosFields), buildBinaryPlist(iosFields), ...real.map(({ content }) => content)]
    },
    run: readPlist,
  },
  cgbi: {
    findSeeds: async () => {
      const images = (await readSamples()).IPA.filter(({ name }) => name.endsWith('.png'))
      return images.map(({ content }) => content)
    },
    run: decodeCgbi,
  },
  executables: {
    findSeeds: executables,
    run: async (input) => {
      readElf(input)
      readPe(input)
      readMachArchitectures(input, input.length)
      const archive = createArchive(new Map([['app.exe', input]]))
      await readPeIcon(archive, { name: 'app.exe', sizeBytes: input.length })
    },
  },
  icns: {
    findSeeds: () => [
      buildIcns([
        ['TOC ', Buffer.alloc(16)],
        ['ic07', buildPng(fill(16, [1, 2, 3, 255]))],
        ['it32', Buffer.alloc(64)],
      ]),
    ],
    run: (input) =>
      readIcns(createArchive(new Map([['Resources/AppIcon.icns', input]])), '', { CFBundleIconFile: 'AppIcon' }),
  },
  drawing: {
    findSeeds: () => findFiles(/^res\/(drawable|mipmap)[^/]*\/.*\.xml$/),
    run: (input) => {
      const source = {
        archive: createArchive(new Map([['icon.xml', input]])),
        table: () => [],
        folder: '',
        readXml: readBinaryXml,
      }
      return findIcon(source, [{ kind: 'text', text: 'icon.xml' }])
    },
  },
  zip: { findSeeds: findArchives, run: (input) => analyzeArchive(openPieces([input])) },
  app: {
    findSeeds: async () => Object.values(await readSamples()).map(packFiles),
    run: (input) => analyzeArchive(openZip(unpackFiles(input))),
  },
}

async function findArchives(): Promise<Buffer[]> {
  const samples = Object.values(await readSamples())
  const archives = samples.flatMap((inputs) => [buildZip(inputs), buildZip(inputs, { zip64: true })])
  return archives
    .map((pieces) => Buffer.concat(pieces.filter((piece) => Buffer.isBuffer(piece) && sizeOf(piece) > 0) as Buffer[]))
    .filter((bytes) => bytes.length < 64 * 1024)
}

/** Files without what a zip archive has around them, whose checksums no change would survive. */
function packFiles(samples: Sample[]): Buffer {
  return Buffer.concat(
    samples.flatMap(({ name, content }) => {
      const header = Buffer.alloc(5)
      header.writeUInt8(Buffer.byteLength(name), 0)
      header.writeUInt32LE(content.length, 1)
      return [header, Buffer.from(name), content]
    }),
  )
}

function unpackFiles(packed: Buffer): Sample[] {
  const files = new Map<string, Sample>()
  for (let at = 0; at + 5 <= packed.length; ) {
    const nameEnd = at + 5 + packed.readUInt8(at)
    const end = Math.min(nameEnd + packed.readUInt32LE(at + 1), packed.length)
    const name = packed.toString('utf8', at + 5, nameEnd)
    files.set(name, { name, content: packed.subarray(nameEnd, end) })
    at = Math.max(end, at + 5)
  }
  return [...files.values()]
}
