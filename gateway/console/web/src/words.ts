// Small texts: names made readable, times as the reader's locale has them.

/** "sendBack", "send-back" and "send_back" become "Send back". */
export function readable(name: string): string {
  const words = name
    .replace(/([\p{Ll}\p{N}])(\p{Lu})/gu, "$1 $2")
    .replace(/(\p{Lu})(\p{Lu}\p{Ll})/gu, "$1 $2")
    .replace(/[-_.~\s]+/g, " ")
    .trim();
  if (words === "") {
    return name;
  }
  // NB: words in capitals are abbreviations and stay as they are.
  const lower = words.replace(/\p{Lu}\p{Ll}+/gu, (word) => word.toLowerCase());
  return lower.charAt(0).toUpperCase() + lower.slice(1);
}

const minuteFormat = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const clockFormat = new Intl.DateTimeFormat(undefined, { timeStyle: "short" });
const dayFormat = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
const relativeFormat = new Intl.RelativeTimeFormat(undefined, { numeric: "auto" });
const numberFormat = new Intl.NumberFormat(undefined, { maximumFractionDigits: 20 });

export const formatMinute = (time: Date) => minuteFormat.format(time);
export const formatClock = (time: Date) => clockFormat.format(time);
export const formatNumber = (value: number) => numberFormat.format(value);

/** A calendar day such as "2026-12-24", which belongs to no time zone. */
export function formatDay(day: string): string {
  const [year, month, date] = day.split("-").map(Number);
  const time = new Date(year ?? NaN, (month ?? NaN) - 1, date ?? NaN);
  return Number.isNaN(time.getTime()) ? day : dayFormat.format(time);
}

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;

/** "5 minutes ago" for the last day, then the date. */
export function formatAgo(time: Date, now: Date): string {
  const past = now.getTime() - time.getTime();
  if (past < minute) {
    return past > -minute ? "just now" : formatMinute(time);
  }
  if (past < hour) {
    return relativeFormat.format(-Math.floor(past / minute), "minute");
  }
  return past < day ? relativeFormat.format(-Math.floor(past / hour), "hour") : dayFormat.format(time);
}

/** "1 entry", "2 entries". */
export const count = (n: number, one: string, many: string) => `${formatNumber(n)} ${n === 1 ? one : many}`;
