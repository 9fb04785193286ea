import { z } from 'zod'

/** A CI job, as the token of its CI system describes it. */
export type CiJob = {
  issuer: string
  repository: string
  /** What the token says of the workflow, as it is. */
  workflowRef: string
  /** The workflow's file, from the root of the repository. */
  workflowPath: string
  /** Where a workflow is that is named by its file alone; ends in `/` unless it is the root. */
  workflowFolder: string
  environment: string | undefined
  ref: string | undefined
  runId: string | undefined
}

const text = z.string().max(1024)
const id = z.union([text, z.number().transform(String)])

/** docs.github.com, "OpenID Connect reference". Others that speak the same names (Gitea, Forgejo) are read as well. */
const GitHubClaims = z.object({
  iss: text,
  repository: text,
  workflow_ref: text,
  environment: text.optional(),
  ref: text.optional(),
  run_id: id.optional(),
})

/** docs.gitlab.com, "OpenID Connect (OIDC) Authentication Using ID Tokens". `ref_path` is there since GitLab 16.0. */
const GitLabClaims = z.object({
  iss: text,
  project_path: text,
  ci_config_ref_uri: text,
  environment: text.nullish(),
  ref: text.optional(),
  ref_type: text.optional(),
  ref_path: text.optional(),
  pipeline_id: id.optional(),
})

/** The job behind a token, or undefined when its claims do not describe one whose workflow is in its own repository. */
export function readCiJob(claims: unknown): CiJob | undefined {
  const gitHub = GitHubClaims.safeParse(claims).data
  if (gitHub !== undefined) return readGitHubJob(gitHub)
  const gitLab = GitLabClaims.safeParse(claims).data
  return gitLab === undefined ? undefined : readGitLabJob(gitLab)
}

function readGitHubJob(claims: z.output<typeof GitHubClaims>): CiJob | undefined {
  const workflowPath = readWorkflowPath(claims.workflow_ref, `${claims.repository}/`)
  if (workflowPath === undefined) return undefined
  return {
    issuer: claims.iss,
    repository: claims.repository,
    workflowRef: claims.workflow_ref,
    workflowPath,
    workflowFolder: '.github/workflows/',
    environment: claims.environment,
    ref: claims.ref,
    runId: claims.run_id,
  }
}

function readGitLabJob(claims: z.output<typeof GitLabClaims>): CiJob | undefined {
  const host = claims.iss.replace(/^https?:\/\//, '').replace(/\/+$/, '')
  const workflowPath = readWorkflowPath(claims.ci_config_ref_uri, `${host}/${claims.project_path}//`)
  if (workflowPath === undefined) return undefined
  return {
    issuer: claims.iss,
    repository: claims.project_path,
    workflowRef: claims.ci_config_ref_uri,
    workflowPath,
    workflowFolder: '',
    environment: claims.environment ?? undefined,
    ref: claims.ref_path ?? readFullRef(claims.ref_type, claims.ref),
    runId: claims.pipeline_id,
  }
}

/**
 * What is between the repository and the ref. A workflow of another repository has none. The first `@refs/` ends it:
 * a branch may be called `a@refs/b`, while `release.yml@x.yml@refs/heads/main` is the file `release.yml@x.yml`.
 */
function readWorkflowPath(workflowRef: string, prefix: string): string | undefined {
  if (!workflowRef.toLowerCase().startsWith(prefix.toLowerCase())) return undefined
  const end = workflowRef.indexOf('@refs/', prefix.length)
  return end <= prefix.length ? undefined : workflowRef.slice(prefix.length, end)
}

function readFullRef(type: string | undefined, name: string | undefined): string | undefined {
  if (name === undefined) return undefined
  if (type === 'branch') return `refs/heads/${name}`
  return type === 'tag' ? `refs/tags/${name}` : undefined
}
