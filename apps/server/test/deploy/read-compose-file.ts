import { readFileSync } from 'node:fs'
import { parse } from 'yaml'
import { repository } from './read-dockerfile.ts'

export type ComposeService = { command: string[]; environment: Record<string, string> }

/** The commands and settings of a compose file, with its variables filled in. */
export function readComposeFile(name: string, variables: Record<string, string>) {
  const text = readFileSync(`${repository}deploy/${name}`, 'utf8').replace(
    /\$\{(\w+)(?::\?[^}]*)?\}/g,
    (_, variable: string) => {
      const value = variables[variable]
      if (value === undefined) throw new Error(`${name} needs ${variable}`)
      return value
    },
  )
  const file: { services: Record<string, Partial<ComposeService>> } = parse(text, { merge: true })
  const find = (service: string): ComposeService => {
    const { command = [], environment = {} } = file.services[service] ?? {}
    if (file.services[service] === undefined) throw new Error(`${name} has no service ${service}`)
    return { command, environment }
  }
  return { find }
}
