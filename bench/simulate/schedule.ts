import { drawFraction, draws } from './random.ts'

export type ScheduleOptions = {
  devices: number
  seed: number
  days: number
  /** The mean; devices differ. */
  launchesPerDay: number
  /**
   * How much they differ: the standard deviation of the logarithm of their launches per day. By default 0.8, with which a
   * tenth of the devices makes a third of the launches.
   */
  spread?: number
  /** Unix seconds. */
  startSeconds: number
}

/** Seconds after the start of the period. */
export type DueLaunch = { device: number; atSeconds: number }

export type Schedule = {
  /** The next launch of all, in the order of time, before a whole minute of the period; undefined when there is none. */
  next: (untilSeconds?: number) => DueLaunch | undefined
}

const minute = 60
const daySeconds = 86_400
const weekHours = 168
/** Between two launches. It also puts the next launch of a device into a later minute than the one at work. */
const shortestGapSeconds = 60
const usualSpread = 0.8

/** How busy each hour of a day is (UTC), and how much busier a day of the weekend. */
const hourWeights = [3, 2, 1, 1, 1, 2, 4, 7, 8, 7, 6, 6, 8, 8, 7, 6, 7, 9, 11, 13, 14, 12, 9, 5]
const weekendWeight = 1.25

const activityBeforeHour = sumActivity()

/**
 * Launches as a Poisson process of each device, faster and slower with the hour. Every device is in the list of the minute
 * of its next launch and in no other, so the memory is 8 bytes a device, and to find the next launch costs the same
 * however many there are.
 */
export function createSchedule(options: ScheduleOptions): Schedule {
  const { devices, days, startSeconds } = options
  if (!Number.isInteger(startSeconds)) throw new RangeError('the start must be a whole number of seconds')
  const minutes = Math.ceil((days * daySeconds) / minute)
  const none = -1
  const firstOfMinute = new Int32Array(minutes).fill(none)
  const following = new Int32Array(devices).fill(none)
  const nextAt = new Uint32Array(devices)

  const enlist = (device: number, atSeconds: number) => {
    const slot = Math.floor(atSeconds / minute)
    if (slot >= minutes) return
    nextAt[device] = atSeconds
    following[device] = firstOfMinute[slot] ?? none
    firstOfMinute[slot] = device
  }
  for (let device = 0; device < devices; device += 1) {
    enlist(device, chooseNext(options, device, { atSeconds: 0, isFirst: true }))
  }

  let slot = -1
  let due: DueLaunch[] = []
  let taken = 0
  const takeMinute = () => {
    due = []
    taken = 0
    for (let device = firstOfMinute[slot] ?? none; device !== none; device = following[device] ?? none) {
      due.push({ device, atSeconds: nextAt[device] ?? 0 })
    }
    for (const { device, atSeconds } of due) enlist(device, chooseNext(options, device, { atSeconds, isFirst: false }))
    due.sort((a, b) => a.atSeconds - b.atSeconds || a.device - b.device)
  }
  return {
    next: (untilSeconds = minutes * minute) => {
      const end = Math.min(minutes, Math.floor(untilSeconds / minute))
      while (taken === due.length && slot + 1 < end) {
        slot += 1
        takeMinute()
      }
      const launch = due[taken]
      if (launch !== undefined) taken += 1
      return launch
    },
  }
}

type Last = { atSeconds: number; isFirst: boolean }

/** Whole seconds after the start of the period. */
function chooseNext(options: ScheduleOptions, device: number, last: Last): number {
  const { seed, startSeconds, launchesPerDay, spread = usualSpread } = options
  const { atSeconds, isFirst } = last
  // 1 − fraction is never 0, whose logarithm is not finite.
  const chance = drawFraction(seed, device, isFirst ? draws.firstLaunch : draws.nextLaunch, atSeconds)
  const daysOfActivity = -Math.log(1 - chance) / (launchesPerDay * drawLaunchFactor(seed, device, spread))
  const nextSeconds = secondsAt(activityAt(startSeconds + atSeconds) + daysOfActivity) - startSeconds
  return Math.max(Math.floor(nextSeconds), isFirst ? 0 : atSeconds + shortestGapSeconds)
}

/** Log-normal with mean 1 (Box and Muller). */
function drawLaunchFactor(seed: number, device: number, spread: number): number {
  const radius = Math.sqrt(-2 * Math.log(1 - drawFraction(seed, device, draws.launchRate)))
  const normal = radius * Math.cos(2 * Math.PI * drawFraction(seed, device, draws.launchRate, 1))
  return Math.exp(spread * normal - spread ** 2 / 2)
}

/** Unix time measured in mean days of activity instead of seconds. */
function activityAt(unixSeconds: number): number {
  // 1 January 1970 was a Thursday; the table begins on a Sunday.
  const hours = unixSeconds / 3600 + 4 * 24
  const week = Math.floor(hours / weekHours)
  const hour = Math.floor(hours - week * weekHours)
  const before = activityBeforeHour[hour] ?? 0
  return week * 7 + before + (hours - week * weekHours - hour) * ((activityBeforeHour[hour + 1] ?? 7) - before)
}

/** The reverse. */
function secondsAt(activity: number): number {
  const week = Math.floor(activity / 7)
  const rest = activity - week * 7
  let hour = 0
  for (let step = 128; step > 0; step >>= 1) {
    if (hour + step < weekHours && (activityBeforeHour[hour + step] ?? 7) <= rest) hour += step
  }
  const before = activityBeforeHour[hour] ?? 0
  const hours = hour + (rest - before) / ((activityBeforeHour[hour + 1] ?? 7) - before)
  return (week * weekHours + hours - 4 * 24) * 3600
}

/** For each hour of the week, and the end of the last: the activity before it. A week has 7 days of it. */
function sumActivity(): Float64Array {
  const weights = Array.from({ length: weekHours }, (_, hour) => {
    const day = Math.floor(hour / 24)
    return (hourWeights[hour % 24] ?? 0) * (day === 0 || day === 6 ? weekendWeight : 1)
  })
  const total = weights.reduce((sum, weight) => sum + weight, 0)
  const sums = new Float64Array(weekHours + 1)
  for (const [hour, weight] of weights.entries()) sums[hour + 1] = (sums[hour] ?? 0) + (weight / total) * 7
  return sums
}
