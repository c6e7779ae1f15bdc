import { formatAgo, formatMinute } from "../words";

/** A time as people say it, or exactly; pointing at it shows all of it. */
export function Time({ at, exact = false }: { at: number | string; exact?: boolean }) {
  const time = new Date(at);
  if (Number.isNaN(time.getTime())) {
    return null;
  }
  return (
    <time dateTime={time.toISOString()} title={formatMinute(time)}>
      {exact ? formatMinute(time) : formatAgo(time, new Date())}
    </time>
  );
}
