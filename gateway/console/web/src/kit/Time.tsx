import { useTranslation } from "react-i18next";
import { formatAgo, formatDue, formatMinute } from "../words";

interface TimeProps {
  at: number | string;
  /** How it is said: as people say what is past, exactly, or as what is still to come. */
  as?: "ago" | "exact" | "due";
}

/** A time; pointing at it shows all of it. */
export function Time({ at, as = "ago" }: TimeProps) {
  useTranslation(); // it changes with the language
  const time = new Date(at);
  if (Number.isNaN(time.getTime())) {
    return null;
  }
  const exact = formatMinute(time);
  return (
    <time dateTime={time.toISOString()} title={exact}>
      {as === "exact" ? exact : as === "due" ? formatDue(time, new Date()) : formatAgo(time, new Date())}
    </time>
  );
}
