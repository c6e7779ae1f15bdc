import { ArrowRight } from "lucide-react";
import { useState } from "react";
import { Trans, useTranslation } from "react-i18next";
import type { HistoryEntry } from "../api/types";
import type { History } from "../api/workflow";
import { Button } from "../kit/Button";
import { Time } from "../kit/Time";
import { formatNumber, readable } from "../words";
import { movesOf } from "./historyEntries";

/** How many entries are shown at first, and more at a time. */
const entriesStep = 8;

/** The newest entries first; older ones when they are asked for. */
export function HistoryList({ history, machines }: { history: History; machines: string[] }) {
  const { t } = useTranslation();
  const [shown, setShown] = useState(entriesStep);
  const total = history.entries.length;
  const older = total - shown;
  return (
    <>
      {history.cut && <p className="quiet">{t("history.cut", { total: formatNumber(total) })}</p>}
      <ol className="timeline" reversed>
        {history.entries
          .map((entry, index) => <Entry key={String(index)} entry={entry} machines={machines} />)
          .slice(Math.max(0, older))
          .toReversed()}
      </ol>
      {older > 0 && (
        <Button small onPress={() => setShown(shown + 5 * entriesStep)}>
          {t("history.older", { count: older })}
        </Button>
      )}
    </>
  );
}

function Entry({ entry, machines }: { entry: HistoryEntry; machines: string[] }) {
  const { t } = useTranslation();
  const created = entry.transitionEvent === "";
  const moves = movesOf(entry);
  return (
    <li className="moment">
      <p>
        {created ? (
          <Trans i18nKey="history.created" values={{ user: entry.user }} components={{ 1: <strong /> }} />
        ) : (
          <Trans i18nKey="history.event" values={{ event: readable(entry.transitionEvent), user: entry.user }} components={{ 1: <strong /> }} />
        )}
      </p>
      {moves.length === 0 && <p className="quiet">{t("history.noMove")}</p>}
      {moves.map((move) => (
        <p key={move.machine} className="move">
          {machines.length > 1 && <span>{readable(machines[move.machine] ?? "")}: </span>}
          {!created && (
            <>
              {readable(move.from)} <ArrowRight aria-hidden />
              <span className="visually-hidden"> {t("history.to")} </span>
            </>
          )}
          {readable(move.to)}
        </p>
      ))}
      <p className="moment-when">
        <Time at={entry.ts} as="exact" />
      </p>
    </li>
  );
}
