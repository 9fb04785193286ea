import { readFileSync } from 'node:fs'

export const repository = new URL('../../../../', import.meta.url).pathname

/** One `FROM … ` with what follows it. */
type Stage = {
  environment: Record<string, string>
  /** Files of the repository and the folder below the working directory that they are copied to. */
  copies: { sources: string[]; target: string }[]
  commands: string[]
  user: string | undefined
  stopSignal: string | undefined
  volume: string | undefined
  healthCheck: string[]
  entrypoint: string[]
}

/** The two stages of the image, as far as the tests carry them out. */
export function readDockerfile(): { defaults: Record<string, string>; build: Stage; image: Stage } {
  const instructions = readFileSync(`${repository}deploy/Dockerfile`, 'utf8')
    .replace(/^#.*\n/gm, '')
    .replace(/\\\n/g, ' ')
    .split('\n')
    .filter((line) => line.trim() !== '')
  const defaults: Record<string, string> = {}
  const stages: Stage[] = []
  for (const instruction of instructions) {
    const [, name = '', rest = ''] = /^(\w+)\s+(.*)$/.exec(instruction) ?? []
    if (name === 'ARG') Object.assign(defaults, readAssignments(rest))
    else if (name === 'FROM') stages.push(createStage())
    else addTo(stages.at(-1), name, rest)
  }
  const [build, image] = stages
  if (build === undefined || image === undefined || stages.length !== 2) throw new Error('not two stages')
  return { defaults, build, image }
}

function createStage(): Stage {
  return {
    environment: {},
    copies: [],
    commands: [],
    user: undefined,
    stopSignal: undefined,
    volume: undefined,
    healthCheck: [],
    entrypoint: [],
  }
}

function addTo(stage: Stage | undefined, name: string, rest: string): void {
  if (stage === undefined) throw new Error(`${name} before FROM`)
  if (name === 'ENV') Object.assign(stage.environment, readAssignments(rest))
  else if (name === 'COPY') {
    const words = rest.split(/\s+/)
    const target = words.pop() ?? ''
    if (!rest.startsWith('--from')) stage.copies.push({ sources: words, target })
  } else if (name === 'RUN') stage.commands.push(rest)
  else if (name === 'USER') stage.user = rest
  else if (name === 'STOPSIGNAL') stage.stopSignal = rest
  else if (name === 'VOLUME') stage.volume = rest
  else if (name === 'HEALTHCHECK') stage.healthCheck = JSON.parse(rest.slice(rest.indexOf('[')))
  else if (name === 'ENTRYPOINT') stage.entrypoint = JSON.parse(rest)
  else if (!['WORKDIR', 'EXPOSE'].includes(name)) throw new Error(`the tests do not know ${name}`)
}

function readAssignments(text: string): Record<string, string> {
  return Object.fromEntries(text.split(/\s+/).map((pair) => pair.split('=', 2)))
}
