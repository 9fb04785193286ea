import { UnanalyzableError } from '../app-facts.ts'

export function malformed(detail: string): UnanalyzableError {
  return new UnanalyzableError('malformed_content', detail)
}

export function beyondLimit(detail: string): UnanalyzableError {
  return new UnanalyzableError('limit_exceeded', detail)
}
