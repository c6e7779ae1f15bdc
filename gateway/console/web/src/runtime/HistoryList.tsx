import { useInfiniteQuery } from "@tanstack/react-query";
import { ArrowRight } from "lucide-react";
import { Trans, useTranslation } from "react-i18next";
import { messageFor } from "../api/http";
import type { Instance } from "../api/runtime";
import type { HistoryEntry, Presentation } from "../api/types";
import { loadHistory } from "../api/workflow";
import { Button } from "../kit/Button";
import { LoadFault, Skeleton } from "../kit/Notice";
import { Time } from "../kit/Time";
import { movesOf, wordsOf } from "./historyEntries";
import { historyKey } from "./useWorkflow";

interface HistoryListProps {
  instance: Instance;
  machines: string[];
  workflow: Presentation | undefined;
}

/** The newest entries; older ones when they are asked for. */
export function HistoryList({ instance, machines, workflow }: HistoryListProps) {
  const { t } = useTranslation();
  const history = useInfiniteQuery({
    queryKey: historyKey(instance),
    queryFn: ({ pageParam, signal }) => loadHistory(instance, pageParam, signal),
    initialPageParam: "",
    getNextPageParam: (page) => page.next ?? undefined,
  });
  if (!history.data) {
    return history.isError ? <LoadFault message={messageFor(history.error)} retry={() => void history.refetch()} /> : <Skeleton label={t("history.loading")} rows={3} />;
  }
  return (
    <>
      <ol className="timeline" reversed>
        {history.data.pages.flatMap((page) => page.history).map((entry, index) => (
          <Entry key={`${entry.ts} ${index}`} entry={entry} machines={machines} workflow={workflow} />
        ))}
      </ol>
      {history.hasNextPage && (
        <Button small isDisabled={history.isFetchingNextPage} onPress={() => void history.fetchNextPage()}>
          {t("history.older")}
        </Button>
      )}
    </>
  );
}

interface EntryProps {
  entry: HistoryEntry;
  machines: string[];
  workflow: Presentation | undefined;
}

function Entry({ entry, machines, workflow }: EntryProps) {
  const { t } = useTranslation();
  const created = entry.transitionEvent === "";
  const moves = movesOf(entry);
  const words = wordsOf(workflow);
  return (
    <li className="moment">
      <p>
        {created ? (
          <Trans i18nKey="history.created" values={{ user: entry.user }} components={{ 1: <strong /> }} />
        ) : (
          <Trans i18nKey="history.event" values={{ event: words.event(entry.transitionEvent), user: entry.user }} components={{ 1: <strong /> }} />
        )}
      </p>
      {moves.length === 0 && <p className="quiet">{t("history.noMove")}</p>}
      {moves.map((move) => (
        <p key={move.machine} className="move">
          {machines.length > 1 && <span>{words.machine(machines[move.machine] ?? "")}: </span>}
          {!created && (
            <>
              {words.node(move.from, machines[move.machine])} <ArrowRight aria-hidden />
              <span className="visually-hidden"> {t("history.to")} </span>
            </>
          )}
          {words.node(move.to, machines[move.machine])}
        </p>
      ))}
      <p className="moment-when">
        <Time at={entry.ts} as="exact" />
      </p>
    </li>
  );
}
