import cronstrue from "cronstrue";
/* oxlint-disable-next-line import/no-unassigned-import -- it registers itself */
import "cronstrue/locales/de";

/** "0 6 * * 1-5" as "At 06:00, Monday through Friday"; as it is where it cannot be said. Pure. */
export function cronWords(cron: string, locale: string): string {
  try {
    return cronstrue.toString(cron, { locale, use24HourTimeFormat: true });
  } catch {
    return cron;
  }
}
