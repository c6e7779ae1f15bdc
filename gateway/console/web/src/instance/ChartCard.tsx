import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { ChevronLeft, ChevronRight } from "lucide-react";
import { useEffect, useState } from "react";
import { useTranslation } from "react-i18next";
import { lastEntry, loadEntries } from "../api/past";
import type { Instance } from "../api/runtime";
import { type Activity, loadDiagram } from "../api/tasks";
import { type Caller, privilege } from "../api/types";
import { Button } from "../kit/Button";
import { Time } from "../kit/Time";
import { useQueryPart } from "../navigate";
import { language } from "../text";
import { formatNumber } from "../words";
import { usePresentation } from "../worklist/queries";
import { What } from "./ActivityList";
import { wordsOf } from "./definitionWords";
import type { Taken } from "./NextSteps";
import { pastKey, Then } from "./Then";
import { instanceKey } from "./useSummary";

/** How long the slider must rest before what was then is asked for. */
const restMilliseconds = 250;
/** How many entries are loaded at once. */
const chunk = 50;

interface ChartCardProps {
  instance: Instance;
  caller: Caller;
  /** What the workflow is called. */
  name: string;
  /** When the instance has moved last. */
  moved: string;
  /** Its entity tag, when it is known. */
  tag: string | undefined;
  onReset: (taken: Taken) => void;
}

/** The statechart, now or as after an entry of the history: the address says which, so that it can be passed on. */
export function ChartCard({ instance, caller, name, moved, tag, onReset }: ChartCardProps) {
  const { t } = useTranslation();
  const [asked, change] = useQueryPart();
  const last = lastEntry(tag);
  const at = entryOf(asked.get("at") ?? "", last);
  const picture = useQuery({
    queryKey: at === 0 ? [...instanceKey(instance), "diagram", moved, language()] : [...pastKey(instance), "diagram", at, language()],
    queryFn: ({ signal }) => loadDiagram(instance, at, signal),
    placeholderData: keepPreviousData,
    retry: false,
  });
  const first = at - ((at - 1) % chunk);
  const end = Math.min(last, first + chunk - 1);
  const entries = useQuery({
    queryKey: [...pastKey(instance), "entries", first, end],
    queryFn: ({ signal }) => loadEntries(instance, first, end, signal),
    enabled: at > 0,
    staleTime: Number.POSITIVE_INFINITY,
    placeholderData: keepPreviousData,
  });
  if (!picture.data && last === 0) {
    return null;
  }
  return (
    <section className="card" aria-labelledby="diagram-title">
      <h2 id="diagram-title">{at === 0 ? t("instance.diagram") : t("past.title", { entry: formatNumber(at) })}</h2>
      {picture.data && (
        <img
          className="diagram"
          src={picture.data}
          aria-busy={picture.isPlaceholderData || undefined}
          alt={at === 0 ? t("instance.diagramAlt", { name }) : t("past.diagramAlt", { name, entry: formatNumber(at) })}
        />
      )}
      {last > 0 && <Slider instance={instance} caller={caller} at={at} last={last} entries={entries.data ?? []} onMove={(to) => change({ at: to === 0 ? "" : String(to) }, "replace")} />}
      {at > 0 && (
        <Then
          instance={instance}
          at={at}
          entry={entries.data?.find(({ sequence }) => sequence === at)}
          operates={caller.privileges.includes(privilege.workflows)}
          tag={tag ?? ""}
          onReset={(to) => {
            change({ at: to === 0 ? "" : String(to) }, "replace");
            onReset({ name: t("reset.done", { entry: formatNumber(at) }), moved: true, redirect: "" });
          }}
        />
      )}
    </section>
  );
}

/** Which entry an address asks for; 0 is now, and so is what cannot be one. */
function entryOf(text: string, last: number): number {
  const at = /^[1-9]\d*$/.test(text) ? Number(text) : 0;
  return at > last ? 0 : at;
}

interface SliderProps {
  instance: Instance;
  caller: Caller;
  /** 0 is now. */
  at: number;
  last: number;
  /** Some of the history. */
  entries: Activity[];
  /** It rests there. */
  onMove: (at: number) => void;
}

/** Moves through the history. Its end is now. */
function Slider({ instance, caller, at, last, entries, onMove }: SliderProps) {
  const { t } = useTranslation();
  const words = wordsOf(usePresentation(instance.workflowId).data);
  const [moving, setMoving] = useState<number | null>(null);
  const now = last + 1;
  const place = Math.min(moving ?? (at === 0 ? now : at), now);
  useEffect(() => {
    if (moving === null) {
      return;
    }
    const rest = setTimeout(() => {
      setMoving(null);
      onMove(moving > last ? 0 : moving);
    }, restMilliseconds);
    return () => clearTimeout(rest);
    // oxlint-disable-next-line react/exhaustive-deps -- what is done when it rests is no reason to wait longer
  }, [moving]);
  const step = (by: number) => setMoving(Math.max(1, Math.min(now, place + by)));
  const entry = entries.find(({ sequence }) => sequence === place);
  const numbers = { entry: formatNumber(place), last: formatNumber(last) };
  return (
    <>
      <div className="past-slider">
        <Button kind="quiet" round aria-label={t("past.back")} onPress={() => step(-1)}>
          <ChevronLeft aria-hidden />
        </Button>
        <input
          type="range"
          min={1}
          max={now}
          value={place}
          aria-label={t("past.label")}
          aria-valuetext={place === now ? t("past.now") : t("past.entry", numbers)}
          onChange={({ target }) => setMoving(Number(target.value))}
        />
        <Button kind="quiet" round aria-label={t("past.forward")} onPress={() => step(1)}>
          <ChevronRight aria-hidden />
        </Button>
      </div>
      <div className="past-entry" role="status">
        {place === now ? (
          <p>{t("past.nowAfter", { count: last, number: formatNumber(last) })}</p>
        ) : (
          <>
            <p className="quiet">{t("past.entry", numbers)}</p>
            {entry && (
              <>
                <p>
                  <What entry={entry} caller={caller} words={words} />
                </p>
                <p className="moment-when">
                  <Time at={entry.ts} as="exact" />
                </p>
              </>
            )}
          </>
        )}
      </div>
    </>
  );
}
