/** A resource by its id or, in an app bundle that was never given ids, by its name: `string/app_name`. */
export type ResourceReference = { id: number; name?: string }

export type ResourceValue =
  | { kind: 'text'; text: string }
  | { kind: 'reference'; reference: ResourceReference }
  | { kind: 'number'; number: number }
  /** In density-independent pixels: other units are taken as if they were. */
  | { kind: 'dimension'; dp: number }
  | { kind: 'fraction'; fraction: number }
  | { kind: 'color'; argb: number }

/** The bits of a ResTable_config that are asked for. */
export type Configuration = {
  /** Language and region: `en`, `pt-BR`; empty for the default. */
  locale: string
  density: number
  sdk: number
  /** Nothing but density and version of the system decides whether it holds. */
  isPlain: boolean
}

export type ConfiguredValue = { configuration: Configuration; value: ResourceValue }

/** Finds what a resource is in each configuration. Throws an UnanalyzableError when the table is malformed there. */
export type ResourceTable = (reference: ResourceReference) => ConfiguredValue[]

const fractionDigits = [1 / 256, 1 / 256 / 2 ** 7, 1 / 256 / 2 ** 15, 1 / 256 / 2 ** 23]

/** The form that dimensions and fractions have: 24 bits of mantissa, 2 of radix, 4 of unit. */
function decodeComplex(data: number): number {
  return (data & ~0xff) * (fractionDigits[(data >>> 4) & 3] ?? 0)
}

export function decodeDimension(data: number): ResourceValue {
  return { kind: 'dimension', dp: decodeComplex(data) }
}

export function decodeFraction(data: number): ResourceValue {
  return { kind: 'fraction', fraction: decodeComplex(data) }
}

const float = new DataView(new ArrayBuffer(4))

export function decodeFloat(data: number): ResourceValue {
  float.setUint32(0, data)
  return { kind: 'number', number: float.getFloat32(0) }
}

/** A Res_value: a kind of value and 32 bits of it. undefined: a kind that nothing here asks for. */
export function decodeValue(dataType: number, data: number, text: () => string | undefined): ResourceValue | undefined {
  switch (dataType) {
    case 0x01:
    case 0x07:
      return data === 0 ? undefined : { kind: 'reference', reference: { id: data } }
    case 0x03: {
      const found = text()
      return found === undefined ? undefined : { kind: 'text', text: found }
    }
    case 0x04:
      return decodeFloat(data)
    case 0x05:
      return decodeDimension(data)
    case 0x06:
      return decodeFraction(data)
  }
  if (dataType >= 0x1c && dataType <= 0x1f) return { kind: 'color', argb: data }
  if (dataType >= 0x10 && dataType <= 0x1b) return { kind: 'number', number: data | 0 }
  return undefined
}
