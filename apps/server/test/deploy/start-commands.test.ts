import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createInstallation, type Installation } from './installation.ts'
import { readComposeFile } from './read-compose-file.ts'
import { readDockerfile, repository } from './read-dockerfile.ts'

let installation: Installation

beforeAll(async () => {
  installation = await createInstallation()
})
afterAll(() => installation.remove())

describe('the image', () => {
  it('has the Node that the project is pinned to', () => {
    const lock = JSON.parse(readFileSync(`${repository}package-lock.json`, 'utf8'))
    expect(readDockerfile().defaults.NODE_IMAGE).toMatch(`node:${lock.packages['node_modules/node'].version}-`)
  })

  it('is healthy once it has started, and stops in order, not as root and with nothing but its volume to write to', async () => {
    const { image } = readDockerfile()
    expect(image.user).toMatch(/^[1-9]\d*:[1-9]\d*$/)
    expect(image.environment.GODWIT_DATA_DIR).toBe(image.volume)

    const service = await installation.createService(image.entrypoint, image.environment)
    expect(await service.checkHealth()).toBe(1)
    await service.start()
    expect((await fetch(`${service.baseUrl}/readyz`)).status).toBe(200)
    expect(await service.checkHealth()).toBe(0)
    expect(service.output()).not.toContain('"level":40')
    expect(await service.stop(image.stopSignal)).toBe(0)
  })
})

describe('compose.yaml', () => {
  it('starts with its settings', async () => {
    const { find } = readComposeFile('compose.yaml', { GODWIT_DOMAIN: 'push.example.com' })
    const { image } = readDockerfile()
    const { command, environment } = find('godwit')
    const service = await installation.createService([...image.entrypoint, ...command], environment)
    await service.start()
    expect(service.output()).toContain('Godwit is ready at https://push.example.com')
    expect(await service.stop(image.stopSignal)).toBe(0)
  })
})

describe('godwit.service', () => {
  it('starts with its command and settings, from where it is installed', async () => {
    const unit = readFileSync(`${repository}deploy/godwit.service`, 'utf8')
    const read = (name: string) => [...unit.matchAll(new RegExp(`^${name}=(.*)$`, 'gm'))].map(([, value = '']) => value)
    const [folder = ''] = read('WorkingDirectory')
    const command = (read('ExecStart')[0] ?? '').split(' ').map((word) => word.replace(`${folder}/`, ''))
    const settings = Object.fromEntries(read('Environment').map((pair) => pair.split('=', 2)))
    expect(settings.GODWIT_DATA_DIR).toBe(`/var/lib/${read('StateDirectory')[0]}`)

    const service = await installation.createService(command, settings)
    await service.start()
    expect((await fetch(`${service.baseUrl}/readyz`)).status).toBe(200)
    expect(await service.stop()).toBe(0)
  })
})

describe('every setting that deploy/ names', () => {
  it("is in the README's table", () => {
    const readme = readFileSync(`${repository}README.md`, 'utf8')
    const files = [
      'compose.yaml',
      'compose.instances.yaml',
      'godwit.service',
      'Dockerfile',
      'helm/godwit/templates/deployment.yaml',
    ]
    const ofCaddy = ['GODWIT_DOMAIN', 'GODWIT_UPSTREAMS']
    for (const file of files) {
      const text = readFileSync(`${repository}deploy/${file}`, 'utf8')
      for (const [name] of text.matchAll(/\b(GODWIT|DATABASE)_[A-Z_]*[A-Z]\b/g)) {
        if (!ofCaddy.includes(name)) expect(readme, `${name} in ${file}`).toContain(`\`${name}\``)
      }
    }
  })
})
