/** What an archive may ask of the analyzer. Whatever is beyond is refused, and costs no more than reading up to there. */
export const limits = {
  entries: 200_000,
  centralDirectoryBytes: 64 * 1024 ** 2,
  manifestBytes: 4 * 1024 ** 2,
  resourceTableBytes: 64 * 1024 ** 2,
  plistBytes: 1024 ** 2,
  iconBytes: 4 * 1024 ** 2,
  /** Width and height. */
  iconPx: 2048,
  /** What an icon is made smaller to. */
  shownIconPx: 512,
  iconCandidates: 16,
  referenceHops: 10,
  configurationsPerEntry: 512,
  xmlNodes: 200_000,
  attributesPerElement: 1000,
  depth: 64,
  plistObjects: 100_000,
  plistVisits: 200_000,
  machSlices: 32,
  displayNameChars: 256,
} as const
