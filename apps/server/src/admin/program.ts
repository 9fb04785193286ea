import { ApiKeyExpiry, ApiKeyPermission, Plan } from '@godwit/contract'
import { Argument, Command, InvalidArgumentError, Option } from 'commander'
import type { Db } from '../db/connection.ts'
import { addAllowedDomain, removeAllowedDomain } from '../organizations/allowed-domains.ts'
import { replaceSecret } from '../server-secrets.ts'
import { createSigningKeys } from '../sessions/signing-keys.ts'
import {
  createApiKeyOfUser,
  createUser,
  generatePassword,
  requestAnalysesOfAll,
  resetPassword,
  setPlan,
  verifyAuditLog,
} from './actions.ts'
import { backupCommand, restoreCommand } from './backup-commands.ts'
import { doctorCommand } from './doctor-command.ts'
import { formatTable } from './format-table.ts'
import { migrateBlobsCommand } from './migrate-blobs-command.ts'
import { withAdminDeps } from './open-admin-deps.ts'
import {
  listAllAllowedDomains,
  listAllApiKeys,
  listAllServiceAccounts,
  listOrganizations,
  listUnanalyzedReleases,
  listUsers,
} from './queries.ts'
import { say } from './say.ts'

const lists: Record<string, (db: Db) => Promise<Record<string, unknown>[]>> = {
  users: listUsers,
  organizations: listOrganizations,
  'allowed-domains': listAllAllowedDomains,
  'api-keys': listAllApiKeys,
  'service-accounts': listAllServiceAccounts,
  'unanalyzed-releases': listUnanalyzedReleases,
}

/** Not `installation`, which says whose a backup is. */
const replaceableSecrets = ['url-signing', 'pages', 'authorization-cookies', 'sign-in-transactions']

/**
 * The operator's commands. Standard output has only what was asked for, so that a script can take it: a new key, a
 * generated password, a list. What was done is said on standard error.
 */
export function buildProgram(): Command {
  const program = new Command('npm run admin --')
    .description(
      'Manages a Godwit server, running or not. Reads the same settings from the environment as the server does: ' +
        'DATABASE_URL, or GODWIT_DATA_DIR for the embedded database.',
    )
    .helpCommand(false)
  for (const command of [
    createUserCommand(),
    resetPasswordCommand(),
    setPlanCommand(),
    allowedDomainCommand(),
    createApiKeyCommand(),
    replaceSigningKeysCommand(),
    replaceSecretCommand(),
    auditCommand(),
    analyzeCommand(),
    backupCommand(),
    restoreCommand(),
    migrateBlobsCommand(),
    doctorCommand(),
    listCommand(),
  ]) {
    program.addCommand(command)
  }
  return program
}

const passwordFromInput = () => new Option('--password-stdin', 'read the password from standard input')

function createUserCommand(): Command {
  return new Command('create-user')
    .description('Create an account with its personal organization. Its e-mail counts as verified.')
    .requiredOption('--email <email>', 'what the person signs in with')
    .option('--name <name>', 'display name')
    .addOption(passwordFromInput().conflicts('password'))
    .option('--password <password>', 'the password; other users of this machine can see it in the list of processes')
    .addHelpText('after', '\nWithout a password one is generated and printed, only now.')
    .action(async (options: { email: string; name?: string; password?: string; passwordStdin?: true }) => {
      const { password, isGenerated } = await choosePassword(options)
      const { email, userId, organizationId } = await withAdminDeps(
        async (deps) => await createUser(deps, { email: options.email, name: options.name, password }),
      )
      say(`Created the account ${email} (user ${userId}, organization ${organizationId}).`)
      if (isGenerated) print(password, 'Its password, shown only now:')
    })
}

function resetPasswordCommand(): Command {
  return new Command('reset-password')
    .description('Give an account a new password. Everybody who is signed in to it is signed out.')
    .argument('<email>', 'e-mail of the account')
    .addOption(passwordFromInput())
    .option('--remove-second-factor', 'turn off one-time codes, for somebody who has lost the device')
    .addHelpText(
      'after',
      '\nWithout --password-stdin a password is generated and printed, only now. API keys go on working.',
    )
    .action(async (email: string, options: { passwordStdin?: true; removeSecondFactor?: true }) => {
      const { password, isGenerated } = await choosePassword(options)
      const removeSecondFactor = options.removeSecondFactor === true
      await withAdminDeps(async (deps) => await resetPassword(deps, { email, password, removeSecondFactor }))
      say(`${email} has a new password${removeSecondFactor ? ' and no second factor' : ''}; its sessions have ended.`)
      if (isGenerated) print(password, 'The password, shown only now:')
    })
}

function setPlanCommand(): Command {
  return new Command('set-plan')
    .description('Set the plan of an account, and with it that of every organization that it owns.')
    .argument('<email>', 'e-mail of the account')
    .addArgument(new Argument('<plan>', 'the plan').choices(Plan.options))
    .action(async (email: string, plan: Plan) => {
      await withAdminDeps(async (deps) => await setPlan(deps, { email, plan }))
      say(`${email} has the plan ${plan}.`)
    })
}

function allowedDomainCommand(): Command {
  const parent = new Command('allowed-domain').description(
    'Say from which e-mail domains an organization may invite. Without any it may invite everybody.',
  )
  const define = (name: string, description: string) =>
    new Command(name)
      .description(description)
      .argument('<organizationId>', 'id of the organization, as in list organizations', parseId)
      .argument('<domain>', 'such as example.com')
  const add = define('add', 'Allow a domain.').action(async (organizationId: number, domain: string) => {
    await withAdminDeps(async (deps) => await addAllowedDomain(deps, { organizationId, domain }))
    say(`Organization ${organizationId} may invite from ${domain}.`)
  })
  const remove = define('remove', 'Take a domain back.').action(async (organizationId: number, domain: string) => {
    await withAdminDeps(async (deps) => await removeAllowedDomain(deps, { organizationId, domain }))
    say(`Organization ${organizationId} no longer has ${domain} in its list.`)
  })
  return parent.addCommand(add).addCommand(remove)
}

function createApiKeyCommand(): Command {
  return new Command('create-api-key')
    .description('Create an API key of an account and print it, only now.')
    .argument('<email>', 'e-mail of the account')
    .option('--name <name>', 'what the key is for', 'made by the operator')
    .addOption(new Option('--expires-in <time>', 'how long it works').choices(ApiKeyExpiry.options).default('1y'))
    .addOption(new Option('--permission <level>', 'what it may do').choices(ApiKeyPermission.options).default('full'))
    .action(async (email: string, options: { name: string; expiresIn: ApiKeyExpiry; permission: ApiKeyPermission }) => {
      const { id, key, expires_at } = await withAdminDeps(
        async (deps) => await createApiKeyOfUser(deps, { email, ...options }),
      )
      say(
        `Created API key ${id} of ${email}, which ${expires_at === null ? 'does not end' : `ends ${expires_at.toISOString()}`}.`,
      )
      print(key, 'The key, shown only now:')
    })
}

function replaceSigningKeysCommand(): Command {
  return new Command('replace-signing-keys')
    .description(
      'After a leak: make a new key that signs access tokens, and refuse what the keys of before have signed. Clients refresh their tokens by themselves.',
    )
    .action(async () => {
      await withAdminDeps(async (deps) => await createSigningKeys(deps).replace())
      say('A new key signs from now on. A server that runs takes it up within a minute.')
    })
}

function replaceSecretCommand(): Command {
  return new Command('replace-secret')
    .description(
      'After a leak: make a new secret of the server. What the old one has signed is refused by every instance that has ' +
        'been restarted since: restart them all.',
    )
    .addArgument(new Argument('<name>', 'which one').choices(replaceableSecrets))
    .action(async (name: string) => {
      await withAdminDeps(async ({ db }) => await replaceSecret(db, { name }))
      say(`The secret ${name} is a new one. Restart every instance now.`)
    })
}

function auditCommand(): Command {
  const verify = new Command('verify')
    .description(
      'Follow the chain of hashes through all audit logs. Finds events that were changed, removed or inserted behind the ' +
        'back of the server: one line for each, and exit status 1.',
    )
    .action(async () => {
      const { events, organizations, problems } = await withAdminDeps(verifyAuditLog)
      if (problems.length === 0)
        process.stdout.write(
          `${events} events of ${organizations} organization${organizations === 1 ? '' : 's'} are whole\n`,
        )
      else process.exitCode = 1
      for (const problem of problems) say(problem)
    })
  return new Command('audit').description('Look after the audit logs of the organizations.').addCommand(verify)
}

function analyzeCommand(): Command {
  return new Command('analyze')
    .description(
      'Have releases read again that have no analysis, or one of an older version of the analyzer. A server that runs does it, or the next one that starts.',
    )
    .option('--all', 'every release, also those that this version has analyzed')
    .action(async (options: { all?: true }) => {
      const which = options.all === true ? 'all' : 'outdated'
      const count = await withAdminDeps(async (deps) => await requestAnalysesOfAll(deps, { which }))
      say(count === 0 ? 'There is nothing to analyze.' : `${count} release${count === 1 ? '' : 's'} will be analyzed.`)
    })
}

function listCommand(): Command {
  return new Command('list')
    .description('List what there is.')
    .addArgument(new Argument('<what>', 'what to list').choices(Object.keys(lists)))
    .action(async (what: string) => {
      const rows = await withAdminDeps(async ({ db }) => (await lists[what]?.(db)) ?? [])
      if (rows.length === 0) say('There are none.')
      process.stdout.write(formatTable(rows))
    })
}

async function choosePassword(options: { password?: string; passwordStdin?: true }) {
  if (options.password !== undefined) return { password: options.password, isGenerated: false }
  if (options.passwordStdin === true) return { password: await readPassword(), isGenerated: false }
  return { password: generatePassword(), isGenerated: true }
}

/** The first line of standard input. */
async function readPassword(): Promise<string> {
  process.stdin.setEncoding('utf8')
  let text = ''
  for await (const chunk of process.stdin) {
    text += chunk
    if (text.includes('\n')) break
  }
  return text.split(/\r?\n/, 1)[0] ?? ''
}

function parseId(value: string): number {
  const id = /^\d{1,15}$/.test(value) ? Number(value) : Number.NaN
  if (!Number.isSafeInteger(id)) throw new InvalidArgumentError('It must be a number.')
  return id
}

function print(secret: string, introduction: string): void {
  say(introduction)
  process.stdout.write(`${secret}\n`)
}
