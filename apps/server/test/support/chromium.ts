import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Browser, chromium } from 'playwright-core'

const packageDir = dirname(dirname(fileURLToPath(import.meta.resolve('@sparticuz/chromium'))))

/**
 * A headless Chromium that came with `npm ci`, with the libraries that it needs. `GODWIT_TEST_CHROMIUM` names another one:
 * on anything but Linux on x64 there is none in the package.
 */
export async function launchChromium(): Promise<Browser> {
  const own = process.env.GODWIT_TEST_CHROMIUM
  if (own !== undefined) return await chromium.launch({ executablePath: own })
  const dir = await unpackChromium()
  return await chromium.launch({
    executablePath: join(dir, 'chromium'),
    // The sandbox needs rights that containers do not give.
    args: ['--no-sandbox', '--disable-gpu', '--no-zygote'],
    env: { ...process.env, LD_LIBRARY_PATH: join(dir, 'al2023', 'lib'), FONTCONFIG_PATH: join(dir, 'fonts') },
  })
}

/** Unpacks once per version; under another name first, so that a run that is cut short leaves nothing half-done. */
async function unpackChromium(): Promise<string> {
  const { version } = JSON.parse(await readFile(join(packageDir, 'package.json'), 'utf8')) as { version: string }
  const cacheDir = join(packageDir, '..', '..', '.cache')
  const dir = join(cacheDir, `chromium-${version}`)
  if (existsSync(dir)) return dir
  await mkdir(cacheDir, { recursive: true })
  const partial = await mkdtemp(join(cacheDir, 'chromium-partial-'))
  await inflateInto(partial)
  await rename(partial, dir).catch(() => rm(partial, { recursive: true }))
  return dir
}

/** The package unpacks into the folder for temporary files, and the libraries only where it takes itself to be on Amazon Linux. */
async function inflateInto(dir: string): Promise<void> {
  const before = { TMPDIR: process.env.TMPDIR, AWS_LAMBDA_JS_RUNTIME: process.env.AWS_LAMBDA_JS_RUNTIME }
  process.env.TMPDIR = dir
  try {
    const { inflate } = await import('@sparticuz/chromium')
    const bin = join(packageDir, 'bin')
    const archives = ['chromium.br', 'fonts.tar.br', 'swiftshader.tar.br', 'al2023.tar.br']
    await Promise.all(archives.map((name) => inflate(join(bin, name))))
  } finally {
    for (const [name, value] of Object.entries(before)) {
      if (value === undefined) delete process.env[name]
      else process.env[name] = value
    }
  }
}
