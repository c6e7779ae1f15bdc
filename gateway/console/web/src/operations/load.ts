import type { Tone } from "../kit/Badge";
import type { Health } from "./api";

// How a node is, and rates and lines of the load charts. Pure.

/** Shards have fewer nodes than they should: the next loss may stop them. */
export const isShort = (now: Health) => (now.cluster?.short.length ?? 0) > 0;

export const toneOfHealth = (now: Health): Tone => (!now.ready ? "bad" : isShort(now) ? "waiting" : "good");

/** What is drawn, by the name of its chart. */
export const charts = ["requests", "failed", "events", "creates", "commits", "inFlight", "awake", "waiting"] as const;
export type Chart = (typeof charts)[number];

/** Counters that become rates; the others are present values. */
const counters: Partial<Record<Chart, (of: Health) => number | undefined>> = {
  requests: (of) => of.requests.answered,
  failed: (of) => of.requests.failed,
  events: (of) => of.work?.events,
  creates: (of) => of.work?.creates,
  commits: (of) => of.store?.committed,
};
const present: Partial<Record<Chart, (of: Health) => number | undefined>> = {
  inFlight: (of) => of.requests.inFlight,
  awake: (of) => of.work?.awake,
  waiting: (of) => of.store?.waiting,
};

export const isRate = (chart: Chart) => counters[chart] !== undefined;

/** How many readings are kept. */
export const readingsMax = 61;

/** As many values as a line has room for at least; with more it is drawn closer. */
const spanMin = 20;

const isSameNode = (a: Health, b: Health) => a.started === b.started && a.cluster?.self === b.cluster?.self;

/** With one reading more. Another node, or a new start, counts from nothing. */
export function withReading(readings: readonly Health[], next: Health): Health[] {
  const last = readings.at(-1);
  if (last && last.ts === next.ts) {
    return [...readings];
  }
  return last && isSameNode(last, next) ? [...readings, next].slice(-readingsMax) : [next];
}

/** The values of a chart, the oldest first; a rate is one of a second. */
export function seriesOf(chart: Chart, readings: readonly Health[]): number[] {
  const now = present[chart];
  if (now) {
    return readings.map((of) => now(of) ?? 0);
  }
  const count = counters[chart];
  return readings.slice(1).map((of, i) => {
    const before = readings[i] ?? of;
    const seconds = (Date.parse(of.ts) - Date.parse(before.ts)) / 1000;
    return seconds > 0 ? Math.max(0, (count?.(of) ?? 0) - (count?.(before) ?? 0)) / seconds : 0;
  });
}

/** A line through values from the left to the right of a box, and the most that it shows. */
export function lineOf(values: readonly number[], width: number, height: number): { line: string; area: string; most: number } {
  const most = Math.max(0, ...values);
  const step = width / (Math.max(spanMin, values.length) - 1);
  const at = (value: number) => height - (most === 0 ? 0 : (value / most) * height);
  const first = width - (values.length - 1) * step;
  const points = values.map((value, i) => `${round(first + i * step)} ${round(at(value))}`);
  const line = points.length === 0 ? "" : `M${points.join("L")}`;
  return { line, area: line === "" ? "" : `${line}L${round(width)} ${height}L${round(first)} ${height}Z`, most };
}

/** How many minutes the last hour has. */
const minutesMax = 60;

/** Lines of one scale through the values of minutes, the newest at the right; where nothing was measured they have a gap. */
export function linesOf(all: readonly (readonly (number | null)[])[], width: number, height: number): { paths: string[]; most: number } {
  const most = Math.max(0, ...all.flat().map((value) => value ?? 0));
  const step = width / (minutesMax - 1);
  const paths = all.map((values) =>
    values
      .map((value, i) => {
        const goesOn = i > 0 && values[i - 1] !== null;
        return value === null ? "" : `${goesOn ? "L" : "M"}${round(width - (values.length - 1 - i) * step)} ${round(height - (most === 0 ? 0 : (value / most) * height))}${goesOn ? "" : "h0"}`;
      })
      .join(""),
  );
  return { paths, most };
}

/** Two digits of what is small, whole numbers of what is large. */
export const rounded = (value: number) => (value >= 10 ? Math.round(value) : Math.round(value * 10) / 10);

const round = (value: number) => Math.round(value * 100) / 100;

/** "1.2 MB" in parts: the number, and how often it was divided by 1,000. */
export function sizeOf(bytes: number): { value: number; unit: number } {
  let value = Math.max(0, bytes);
  let unit = 0;
  while (value >= 1000 && unit < 4) {
    value /= 1000;
    unit++;
  }
  return { value, unit };
}
