import { analyzeArchive } from './analyze-archive.ts'
import { runAsChild } from './run-as-child.ts'

await runAsChild(analyzeArchive)
