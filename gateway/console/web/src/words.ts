// Small texts: names made readable, times and numbers as the reader's locale has them.
import { locale, t } from "./text";

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

/** What an event is called: its label, or its name made readable. */
export const nameOf = (event: { name: string; label?: string | undefined }) => event.label || readable(event.name);

/** Makes something for each locale once: formats are slow to make. */
function perLocale<T>(make: (locale: string) => T): () => T {
  const made = new Map<string, T>();
  return () => {
    const now = locale();
    const known = made.get(now) ?? make(now);
    made.set(now, known);
    return known;
  };
}

const minuteFormat = perLocale((at) => new Intl.DateTimeFormat(at, { dateStyle: "medium", timeStyle: "short" }));
const clockFormat = perLocale((at) => new Intl.DateTimeFormat(at, { timeStyle: "short" }));
const dayFormat = perLocale((at) => new Intl.DateTimeFormat(at, { dateStyle: "medium" }));
const relativeFormat = perLocale((at) => new Intl.RelativeTimeFormat(at, { numeric: "auto" }));
const numberFormat = perLocale((at) => new Intl.NumberFormat(at, { maximumFractionDigits: 20 }));

export const formatMinute = (time: Date) => minuteFormat().format(time);
export const formatClock = (time: Date) => clockFormat().format(time);
export const formatNumber = (value: number) => numberFormat().format(value);

const amountFormats = perLocale(() => new Map<string, Intl.NumberFormat>());

/** An amount with its currency, a code of ISO 4217; a plain number with what is none. */
export function formatAmount(value: number, currency: string): string {
  const known = amountFormats();
  try {
    const format = known.get(currency) ?? new Intl.NumberFormat(locale(), { style: "currency", currency, maximumFractionDigits: 20 });
    known.set(currency, format);
    return format.format(value);
  } catch {
    return formatNumber(value);
  }
}

/** How many tasks the service counts; beyond it says null (gateway/INTERFACE.md, "Tasks"). */
export const countedTasks = 10_000;

/** How many there are; null is more than countedTasks. */
export const formatCount = (count: number | null) => (count === null ? `${formatNumber(countedTasks)}+` : formatNumber(count));

/** A calendar day such as "2026-12-24", which belongs to no time zone. */
export function formatDay(day: string): string {
  const [year, month, date] = day.split("-").map(Number);
  const time = new Date(year ?? NaN, (month ?? NaN) - 1, date ?? NaN);
  return Number.isNaN(time.getTime()) ? day : dayFormat().format(time);
}

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;

/** "5 minutes ago" for the last day, then the date. */
export function formatAgo(time: Date, now: Date): string {
  const past = now.getTime() - time.getTime();
  if (past < minute) {
    return past > -minute ? t("time.now") : formatMinute(time);
  }
  if (past < hour) {
    return relativeFormat().format(-Math.floor(past / minute), "minute");
  }
  return past < day ? relativeFormat().format(-Math.floor(past / hour), "hour") : dayFormat().format(time);
}

/** When the calendar day of a time has begun. */
const midnight = (time: Date) => new Date(time.getFullYear(), time.getMonth(), time.getDate()).getTime();

/** "in 3 hours", "in 2 days", "2 days ago": how far a time is from now, for what is due. */
export function formatDue(time: Date, now: Date): string {
  const left = time.getTime() - now.getTime();
  const far = Math.abs(left);
  if (far < hour) {
    return relativeFormat().format(Math.trunc(left / minute), "minute");
  }
  if (far < day) {
    return relativeFormat().format(Math.trunc(left / hour), "hour");
  }
  // By the calendar of the reader: what is due in 30 hours may be due tomorrow or the day after.
  const days = Math.round((midnight(time) - midnight(now)) / day);
  return Math.abs(days) < 14 ? relativeFormat().format(days, "day") : dayFormat().format(time);
}
