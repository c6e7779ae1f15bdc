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

interface AmountFormat {
  whole: Intl.NumberFormat;
  /** The number alone: Intl has other marks for money in some regions, and what is shown must be read again. */
  plain: Intl.NumberFormat;
  signs: string[];
}

const amountFormats = new Map<string, AmountFormat | null>();

/** How amounts of a currency are written; null for what is no code of ISO 4217. */
function amountFormat(currency: string, of: string): AmountFormat | null {
  const key = `${of} ${currency}`;
  const before = amountFormats.get(key);
  if (before !== undefined) {
    return before;
  }
  let made: AmountFormat | null = null;
  try {
    const whole = new Intl.NumberFormat(of, { style: "currency", currency, maximumFractionDigits: 20 });
    const { minimumFractionDigits } = whole.resolvedOptions();
    const signs = (["symbol", "narrowSymbol", "code"] as const).flatMap((currencyDisplay) =>
      new Intl.NumberFormat(of, { style: "currency", currency, currencyDisplay }).formatToParts(0).flatMap(({ type, value }) => (type === "currency" ? [value] : [])),
    );
    made = { whole, plain: new Intl.NumberFormat(of, { minimumFractionDigits, maximumFractionDigits: 20 }), signs: signs.toSorted((a, b) => b.length - a.length) };
  } catch {
    // It is shown without a currency.
  }
  amountFormats.set(key, made);
  return made;
}

/** What stands for a currency beside its amounts, the longest first. */
export const currencySigns = (currency: string, of: string): string[] => amountFormat(currency, of)?.signs ?? [];

/** An amount with its currency; a plain number with what is none. */
export function formatAmount(value: number, currency: string, of = locale()): string {
  const format = amountFormat(currency, of);
  if (!format) {
    return formatNumber(value);
  }
  const isDigits = (type: string) => ["integer", "group", "decimal", "fraction"].includes(type);
  const parts = format.whole.formatToParts(value);
  const first = parts.findIndex(({ type }) => isDigits(type));
  return parts.map(({ type, value: text }, at) => (at === first ? format.plain.format(Math.abs(value)) : isDigits(type) ? "" : text)).join("");
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

/** "5 minutes": how long something is, in its largest unit. */
export function durationText(seconds: number): string {
  const [unit, size] = seconds < 60 ? (["second", 1] as const) : seconds < 3600 ? (["minute", 60] as const) : seconds < 86_400 ? (["hour", 3600] as const) : (["day", 86_400] as const);
  return new Intl.NumberFormat(locale(), { style: "unit", unit, unitDisplay: "long", maximumFractionDigits: 1 }).format(seconds / size);
}

/** When the calendar day of a time has begun. */
const midnight = (time: Date) => new Date(time.getFullYear(), time.getMonth(), time.getDate()).getTime();

/** "in 3 hours", "in 2 days", "2 days ago": how far a time is from now, for what is due. */
export function formatDue(time: Date, now: Date): string {
  const left = time.getTime() - now.getTime();
  const far = Math.abs(left);
  if (far < minute) {
    return t(left < 0 ? "time.now" : "time.soon");
  }
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
