import { useTranslation } from "react-i18next";
import { Time } from "../kit/Time";
import { formatNumber } from "../words";
import type { Minute } from "./api";
import { linesOf, rounded } from "./load";
import { useLoad } from "./queries";
import { useText } from "./text";

const box = { width: 360, height: 64 };

interface Line {
  label: string;
  /** Null where nothing was measured. */
  values: (number | null)[];
}

interface Series {
  key: "rate" | "latency" | "backlog";
  lines: Line[];
  unit: (value: number) => string;
}

/** Rate, latency and backlog of each minute of the last hour, of all nodes together. */
export function LastHour() {
  const t = useText();
  useTranslation();
  const { data } = useLoad();
  const { minutes = [], nodes = 1, missing = 0 } = data ?? {};
  const [first] = minutes;
  if (!first) {
    return null; // the first minute after a start
  }
  const line = (label: string, pick: (minute: Minute) => number | null): Line => ({ label, values: minutes.map(pick) });
  const series: Series[] = [
    {
      key: "rate",
      lines: [line(t("health.chart.events"), ({ events }) => events), line(t("hour.refused"), ({ refused }) => refused), line(t("health.chart.requests"), ({ requests }) => requests)],
      unit: (value) => t("hour.perMinute", { value: formatNumber(value) }),
    },
    { key: "latency", lines: [line("p50", (minute) => minute.p50Milliseconds), line("p99", (minute) => minute.p99Milliseconds)], unit: (value) => t("health.milliseconds", { value: formatNumber(rounded(value)) }) },
    { key: "backlog", lines: [line(t("hour.waiting"), ({ backlog }) => backlog)], unit: formatNumber },
  ];
  return (
    <section className="ops-waiting" aria-labelledby="hour-title">
      <h3 id="hour-title">{t("hour.title")}</h3>
      <p className="quiet">
        {t("hour.text", { count: nodes })} <Time at={first.ts} as="exact" />
        {missing > 0 && <strong className="overdue"> {t("hour.missing", { count: missing })}</strong>}
      </p>
      <ul className="ops-charts ops-hours">
        {series.map((each) => (
          <HourChart key={each.key} of={each} />
        ))}
      </ul>
    </section>
  );
}

function HourChart({ of: { key, lines, unit } }: { of: Series }) {
  const t = useText();
  const { paths, most } = linesOf(lines.map(({ values }) => values), box.width, box.height);
  const now = ({ values }: Line) => {
    const last = values.at(-1) ?? null;
    return last === null ? "–" : unit(last);
  };
  const name = t(`hour.${key}`);
  return (
    <li className="card ops-load">
      <p className="ops-load-name">{name}</p>
      <p className="ops-legend">
        {lines.map((line, at) => (
          <span key={line.label} className={`ops-key ops-line-${at}`}>
            {line.label} <b>{now(line)}</b>
          </span>
        ))}
      </p>
      <svg
        className="spark ops-hour"
        viewBox={`-1 -2 ${box.width + 2} ${box.height + 4}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={t("health.chartOf", { name, now: lines.map((line) => `${line.label} ${now(line)}`).join(", "), most: unit(most) })}
      >
        <path className="spark-base" d={`M0 ${box.height}H${box.width}`} />
        {paths.map((path, at) => (
          <path key={at} className={`spark-line ops-line-${at}`} d={path} />
        ))}
      </svg>
      <p className="ops-load-most">{t("health.most", { most: unit(most) })}</p>
    </li>
  );
}
