import { ArrowRight } from "lucide-react";
import { Trans, useTranslation } from "react-i18next";
import type { Activity } from "../api/tasks";
import type { Caller } from "../api/types";
import { Button } from "../kit/Button";
import { Time } from "../kit/Time";
import { readable } from "../words";

interface ActivityListProps {
  /** Newest first. */
  entries: Activity[];
  caller: Caller;
  /** The labels of nodes, as far as they are known. */
  labels: Map<string, string>;
  /** Null when there is no more. */
  onMore: (() => void) | null;
}

/** What has happened, and what people said. */
export function ActivityList({ entries, caller, labels, onMore }: ActivityListProps) {
  const { t } = useTranslation();
  if (entries.length === 0) {
    return <p className="quiet">{t("instance.noActivity")}</p>;
  }
  return (
    <>
      <ol className="timeline">
        {entries.map((entry, index) => (
          <li key={`${entry.kind} ${entry.ts} ${index}`} className={`moment moment-${entry.kind}`}>
            <p>
              <What entry={entry} caller={caller} />
            </p>
            {entry.kind === "history" && <Moves entry={entry} labels={labels} />}
            {entry.kind === "comment" && <p className="text comment">{entry.text}</p>}
            <p className="moment-when">
              <Time at={entry.ts} as="exact" />
            </p>
          </li>
        ))}
      </ol>
      {onMore && (
        <p>
          <Button small onPress={onMore}>
            {t("instance.more")}
          </Button>
        </p>
      )}
    </>
  );
}

function What({ entry, caller }: { entry: Activity; caller: Caller }) {
  const { t } = useTranslation();
  const user = entry.user === caller.id ? caller.name : (entry.userName ?? entry.user ?? "");
  const emphasis = { 1: <strong /> };
  switch (entry.kind) {
    case "history":
      return entry.transitionEvent === "" || entry.transitionEvent === undefined ? (
        <Trans i18nKey="history.created" values={{ user }} components={emphasis} />
      ) : (
        <Trans i18nKey="history.event" values={{ event: readable(entry.transitionEvent), user }} components={emphasis} />
      );
    case "comment":
      return <Trans i18nKey="instance.kinds.comment" values={{ user }} components={emphasis} />;
    case "task": {
      const action = entry.action === "claim" || entry.action === "release" || entry.action === "assign" ? entry.action : "task";
      return <Trans i18nKey={`instance.kinds.${action}`} values={{ user, to: entry.toName ?? entry.to ?? "" }} components={emphasis} />;
    }
    case "timer":
    case "delivery":
      return t(`instance.kinds.${entry.kind}`, { name: readable((entry.timer?.event ?? entry.delivery?.name) || (entry.delivery?.kind ?? "")) });
  }
}

function Moves({ entry, labels }: { entry: Activity; labels: Map<string, string> }) {
  const { t } = useTranslation();
  const name = (node: string) => labels.get(node) ?? readable(node);
  const created = !entry.transitionEvent;
  return (entry.endState ?? []).map((to, machine) => {
    const from = entry.startState?.[machine] ?? "";
    return from === to ? null : (
      <p key={`${machine} ${to}`} className="move">
        {!created && (
          <>
            {name(from)} <ArrowRight aria-hidden />
            <span className="visually-hidden"> {t("history.to")} </span>
          </>
        )}
        {name(to)}
      </p>
    );
  });
}
