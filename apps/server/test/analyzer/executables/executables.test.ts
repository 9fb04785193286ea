import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readElf } from '../../../src/analyzer/executables/read-elf.ts'
import { readMachArchitectures } from '../../../src/analyzer/executables/read-mach-o.ts'
import { readPe } from '../../../src/analyzer/executables/read-pe.ts'
import { buildElf, buildFat, buildMach, buildPe, machTypes } from './build-executables.ts'
import { mutate } from './mutate.ts'

const readMach = (bytes: Buffer) => readMachArchitectures(bytes, bytes.length)

describe('readMachArchitectures', () => {
  it.each([
    [{ type: machTypes.arm64 }, ['arm64']],
    [{ type: machTypes.arm64, subtype: 2 }, ['arm64e']],
    [{ type: machTypes.arm64, subtype: 0x80000002 }, ['arm64e']],
    [{ type: machTypes.arm64For32, subtype: 1, is64: false }, ['arm64_32']],
    [{ type: machTypes.arm, subtype: 9, is64: false }, ['armv7']],
    [{ type: machTypes.arm, subtype: 11, is64: false }, ['armv7s']],
    [{ type: machTypes.arm, subtype: 12, is64: false }, ['armv7k']],
    [{ type: machTypes.x86_64, subtype: 3 }, ['x86_64']],
    [{ type: machTypes.i386, subtype: 3, is64: false }, ['i386']],
    [{ type: machTypes.arm64, isBig: true }, ['arm64']],
    [{ type: machTypes.powerPc, is64: false, isBig: true }, []],
    [{ type: machTypes.arm, subtype: 6, is64: false }, []],
  ])('reads %o as %o', (header, names) => {
    expect(readMach(buildMach(header))).toEqual(names)
  })

  it.each([false, true])('names every slice of a fat executable once (64 bits: %s)', (is64) => {
    const slices = [{ type: machTypes.x86_64 }, { type: machTypes.arm64 }, { type: machTypes.x86_64, subtype: 8 }]
    expect(readMach(buildFat(slices, { is64 }))).toEqual(['x86_64', 'arm64'])
  })

  it('takes 32 slices, and no more', () => {
    const slices = (count: number) => Array.from({ length: count }, () => ({ type: machTypes.arm64 }))
    expect(readMach(buildFat(slices(32)))).toEqual(['arm64'])
    expect(readMach(buildFat(slices(33)))).toEqual([])
    expect(readMach(buildFat(slices(1), { count: 0xffffffff }))).toEqual([])
  })

  it('names nothing when a slice lies outside of the file, or over the table', () => {
    const sound = { type: machTypes.arm64 }
    for (const broken of [
      { offset: 4096 },
      { offset: 0xffffffff },
      { length: 0xffffffff },
      { offset: 4 },
      { length: 0 },
    ]) {
      expect(readMach(buildFat([sound, { ...sound, ...broken }]))).toEqual([])
    }
    expect(readMach(buildFat([{ ...sound, offset: Number.MAX_SAFE_INTEGER }], { is64: true }))).toEqual([])
  })

  it('names nothing of a header that is cut off, and of what is no Mach-O', () => {
    const thin = buildMach({ type: machTypes.arm64 })
    const fat = buildFat([{ type: machTypes.arm64 }])
    expect(readMach(thin.subarray(0, 31))).toEqual([])
    expect(readMachArchitectures(fat.subarray(0, 23), fat.length)).toEqual([])
    const javaClass = Buffer.from('cafebabe00000041', 'hex')
    for (const other of [Buffer.alloc(0), Buffer.from('MZ'), javaClass, Buffer.alloc(64)]) {
      expect(readMach(other)).toEqual([])
    }
  })
})

describe('readElf', () => {
  it('reads the machine and the oldest kernel of a real program', () => {
    const start = readFileSync(new URL('../fixtures/desktop/node-x86_64.elf-start', import.meta.url))
    expect(readElf(start)).toEqual({ architecture: 'x86_64', kernelVersion: '3.2.0' })
  })

  it.each([
    [
      { machine: 183, kernel: [3, 7, 0] },
      { architecture: 'arm64', kernelVersion: '3.7.0' },
    ],
    [
      { machine: 40, is64: false },
      { architecture: 'arm', kernelVersion: '3.2.0' },
    ],
    [
      { machine: 3, is64: false, fileType: 2 },
      { architecture: 'x86', kernelVersion: '3.2.0' },
    ],
    [
      { machine: 243, kernel: [4, 15, 0] },
      { architecture: 'riscv64', kernelVersion: '4.15.0' },
    ],
    [
      { machine: 183, isBig: true },
      { architecture: 'arm64', kernelVersion: '3.2.0' },
    ],
    [
      { machine: 22, isBig: true, is64: false },
      { architecture: undefined, kernelVersion: '3.2.0' },
    ],
    [{ system: 1 }, { architecture: 'x86_64', kernelVersion: undefined }],
  ])('reads %o', (input, facts) => {
    expect(readElf(buildElf(input))).toEqual(facts)
  })

  it('knows the machine of a program whose notes are broken or not among the first bytes', () => {
    const bytes = buildElf()
    expect(readElf(bytes.subarray(0, 64))).toEqual({ architecture: 'x86_64', kernelVersion: undefined })
    bytes.writeBigUInt64LE(2n ** 64n - 1n, 32)
    expect(readElf(bytes)).toEqual({ architecture: 'x86_64', kernelVersion: undefined })
  })

  it('takes nothing else for a program', () => {
    for (const other of [Buffer.alloc(0), Buffer.from('#!/bin/sh'), buildElf({ fileType: 1 }), buildPe()]) {
      expect(readElf(other)).toBeUndefined()
    }
  })
})

describe('readPe', () => {
  it.each([
    [0x8664, true, 'x86_64'],
    [0xaa64, true, 'arm64'],
    [0x14c, false, 'x86'],
    [0x1c4, false, undefined],
  ])('reads machine %i', (machine, is64, architecture) => {
    const bytes = buildPe({ machine, is64, system: [10, 0], subsystem: [6, 1] })
    expect(readPe(bytes)).toEqual({ architecture, operatingSystemVersion: '10.0', subsystemVersion: '6.1' })
  })

  it('takes nothing else for a program, nor one that is cut off', () => {
    const far = buildPe()
    far.writeUInt32LE(0xfffffff0, 0x3c)
    for (const other of [Buffer.alloc(0), Buffer.from('MZ'), far, buildPe().subarray(0, 0xa0), buildElf()]) {
      expect(readPe(other)).toBeUndefined()
    }
  })
})

describe('damaged executables', () => {
  const files = [
    buildMach({ type: machTypes.arm64 }),
    buildFat([{ type: machTypes.arm64 }, { type: machTypes.x86_64 }]),
    buildFat([{ type: machTypes.arm64 }], { is64: true }),
    buildElf(),
    buildElf({ is64: false, isBig: true }),
    buildPe({ icons: [Buffer.alloc(8)] }),
  ]

  it('are never a fault', () => {
    const damaged = fc.constantFrom(...files).chain(mutate)
    const read = (bytes: Buffer): void => {
      readMach(bytes)
      readElf(bytes)
      readPe(bytes)
    }
    fc.assert(fc.property(damaged, read), { numRuns: 3000 })
    fc.assert(fc.property(fc.uint8Array().map(Buffer.from), read))
  })
})
