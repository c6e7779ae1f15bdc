import { useInfiniteQuery } from "@tanstack/react-query";
import { ArrowRight } from "lucide-react";
import { Trans, useTranslation } from "react-i18next";
import type { Instance } from "../api/runtime";
import { type Activity, loadActivity } from "../api/tasks";
import type { Caller } from "../api/types";
import { Button } from "../kit/Button";
import { LoadFault, Skeleton } from "../kit/Notice";
import { Time } from "../kit/Time";
import { asObject, explaining } from "../schemaform/layout";
import { language } from "../text";
import { formatNumber, readable } from "../words";
import { usePresentation } from "../worklist/queries";
import { resetEntry, timerWords, type Words, wordingOf, wordsOf } from "./definitionWords";
import { instanceKey } from "./useSummary";

/** How often what others said is looked for, while the page is in sight. */
const lookEvery = 15_000;

export const activityKey = (instance: Instance) => [...instanceKey(instance), "activity"];

/** What has happened, and what people said: the newest first, older things when they are asked for. */
export function ActivityList({ instance, caller }: { instance: Instance; caller: Caller }) {
  const { t } = useTranslation();
  const words = wordsOf(usePresentation(instance.workflowId).data);
  const activity = useInfiniteQuery({
    queryKey: [...activityKey(instance), language()],
    queryFn: ({ pageParam, signal }) => loadActivity(instance, pageParam, signal),
    initialPageParam: "",
    getNextPageParam: (page) => page.next ?? undefined,
    refetchInterval: lookEvery, // comments and claims are no entries of the history, and no stream tells them
  });
  if (!activity.data) {
    return activity.isError ? <LoadFault fault={activity.error} retry={() => void activity.refetch()} /> : <Skeleton label={t("instance.activityLoading")} rows={3} />;
  }
  const entries = activity.data.pages.flatMap((page) => page.activity);
  if (entries.length === 0) {
    return <p className="quiet">{t("instance.noActivity")}</p>;
  }
  return (
    <>
      <ol className="timeline">
        {entries.map((entry, index) => (
          <li key={`${entry.kind} ${entry.ts} ${entries.length - index}`} className={`moment moment-${entry.kind}`}>
            <p>
              <What entry={entry} caller={caller} words={words} />
            </p>
            {entry.kind === "history" && !["attempt", "cancelled"].includes(wordingOf(entry, words)) && <Moves entry={entry} words={words} />}
            {entry.kind === "history" && <Said data={entry.data} />}
            {entry.kind === "comment" && <p className="text comment">{entry.text}</p>}
            <p className="moment-when">
              <Time at={entry.ts} as="exact" />
            </p>
          </li>
        ))}
      </ol>
      {activity.hasNextPage && (
        <p>
          <Button small isDisabled={activity.isFetchingNextPage} onPress={() => void activity.fetchNextPage()}>
            {t("instance.more")}
          </Button>
        </p>
      )}
    </>
  );
}

interface WhatProps {
  entry: Activity;
  caller: Caller;
  words: Words;
}

export function What({ entry, caller, words }: WhatProps) {
  const { t } = useTranslation();
  const user = entry.user === caller.id ? caller.name : (entry.userName ?? entry.user ?? "");
  const emphasis = { 1: <strong /> };
  switch (entry.kind) {
    case "history": {
      const event = entry.transitionEvent ?? "";
      return <Trans i18nKey={`history.${wordingOf(entry, words)}`} values={{ event: words.event(event), done: words.done(event), user, entry: formatNumber(resetEntry(entry.data) ?? 0) }} components={emphasis} />;
    }
    case "comment":
      return <Trans i18nKey="instance.kinds.comment" values={{ user }} components={emphasis} />;
    case "task": {
      const action = entry.action === "claim" || entry.action === "release" || entry.action === "assign" ? entry.action : "task";
      return <Trans i18nKey={`instance.kinds.${action}`} values={{ user, to: entry.toName ?? entry.to ?? "" }} components={emphasis} />;
    }
    case "timer":
      return entry.timer ? timerWords(entry.timer, words) : null;
    case "delivery":
      return t("instance.kinds.delivery", { name: readable(entry.delivery?.name || (entry.delivery?.kind ?? "")) });
  }
}

/** The texts that people explain themselves in, of what an event brought. The rest is the instance's data. */
function Said({ data }: { data: unknown }) {
  return Object.entries(asObject(data)).map(([name, text]) =>
    typeof text === "string" && text.trim() !== "" && explaining.test(name) ? (
      <p key={name} className="text comment">
        {text}
      </p>
    ) : null,
  );
}

export function Moves({ entry, words }: { entry: Activity; words: Words }) {
  const { t } = useTranslation();
  const created = !entry.transitionEvent;
  const ends = entry.endState ?? [];
  if (ends.every((to, machine) => to === entry.startState?.[machine])) {
    return <p className="move">{t("history.noMove")}</p>;
  }
  return ends.map((to, machine) => {
    const from = entry.startState?.[machine] ?? "";
    return from === to ? null : (
      <p key={`${machine} ${to}`} className="move">
        {!created && (
          <>
            {words.node(from)} <ArrowRight aria-hidden />
            <span className="visually-hidden"> {t("history.to")} </span>
          </>
        )}
        {words.node(to)}
      </p>
    );
  });
}
