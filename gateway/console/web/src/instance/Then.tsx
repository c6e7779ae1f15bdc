import { useQuery } from "@tanstack/react-query";
import { ArrowRight } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { ServiceError } from "../api/http";
import { type Documents, loadDocuments } from "../api/past";
import type { Instance } from "../api/runtime";
import type { Activity } from "../api/tasks";
import type { JSONObject } from "../api/types";
import { Button } from "../kit/Button";
import { LoadFault, Notice, Skeleton } from "../kit/Notice";
import { PlainFacts, ValueOf } from "../runtime/ReadOnly";
import { formatNumber, readable } from "../words";
import { usePresentation } from "../worklist/queries";
import { Moves } from "./ActivityList";
import { type Change, changesOf } from "./changes";
import { wordsOf } from "./definitionWords";
import { ResetDialog } from "./ResetDialog";

/** NB: what was then stays as it is, so that it is no part of what is looked at again when the instance moves on. */
export const pastKey = (instance: Instance) => ["past", instance.workflowId, instance.instanceId];

/** The most values that are listed as changed. */
const changesMax = 100;

const nothing: Documents = { public: {}, private: {} };

const useDocuments = (instance: Instance, at: number) =>
  useQuery({
    queryKey: [...pastKey(instance), "documents", at],
    queryFn: ({ signal }) => (at === 0 ? nothing : loadDocuments(instance, at, signal)),
    staleTime: Number.POSITIVE_INFINITY,
    retry: false,
  });

interface ThenProps {
  instance: Instance;
  at: number;
  entry: Activity | undefined;
  /** The caller runs the service. */
  operates: boolean;
  tag: string;
  /** It was made what it was; the new entry. */
  onReset: (to: number) => void;
}

/** What an entry changed, what the instance held after it, and the way back there. */
export function Then({ instance, at, entry, operates, tag, onReset }: ThenProps) {
  const { t } = useTranslation();
  const presentation = usePresentation(instance.workflowId).data;
  const [asking, setAsking] = useState(false);
  const after = useDocuments(instance, at);
  const before = useDocuments(instance, at - 1);
  const label = (path: string[]) => presentation?.columns.find((column) => column.path === ["svcPublic", ...path].join("."))?.label ?? path.map(readable).join(" › ");
  return (
    <>
      <section className="past-part" aria-labelledby="changed-title">
        <h3 id="changed-title">{t("past.changed")}</h3>
        {entry && <Moves entry={entry} words={wordsOf(presentation)} />}
        {after.data && before.data && (
          <>
            <Changes of={changesOf(before.data.public, after.data.public)} label={label} none={t("past.noChange")} />
            {operates && <Changes of={changesOf(before.data.private, after.data.private)} label={label} title={t("past.private")} />}
          </>
        )}
        {after.data && before.isError && <NotKept fault={before.error} title={t("past.notKeptBefore")} retry={() => void before.refetch()} />}
        {after.isPending && <Skeleton rows={2} />}
      </section>
      {after.isError && <NotKept fault={after.error} title={t("past.notKept")} retry={() => void after.refetch()} />}
      {after.data && (
        <details className="all-data" open>
          <summary>{t("past.data")}</summary>
          <Facts data={after.data.public} />
          {operates && Object.keys(after.data.private).length > 0 && (
            <>
              <h4>{t("past.private")}</h4>
              <Facts data={after.data.private} />
            </>
          )}
        </details>
      )}
      {operates && after.data && (
        <p>
          <Button small onPress={() => setAsking(true)}>
            {t("reset.open")}
          </Button>
        </p>
      )}
      {asking && (
        <ResetDialog
          instance={instance}
          to={at}
          tag={tag}
          onClose={() => setAsking(false)}
          onReset={(to) => {
            setAsking(false);
            onReset(to);
          }}
        />
      )}
    </>
  );
}

function Facts({ data }: { data: JSONObject }) {
  const { t } = useTranslation();
  return Object.keys(data).length === 0 ? <p className="quiet">{t("instance.noData")}</p> : <PlainFacts data={data} />;
}

interface ChangesProps {
  of: Change[];
  label: (path: string[]) => string;
  title?: string;
  /** What is said when nothing has changed. */
  none?: string;
}

/** Values that an entry changed: what they were and what they became. */
function Changes({ of, label, title, none }: ChangesProps) {
  const { t } = useTranslation();
  if (of.length === 0) {
    return none === undefined ? null : <p className="quiet">{none}</p>;
  }
  return (
    <>
      {title !== undefined && <h4>{title}</h4>}
      <dl className="facts">
        {of.slice(0, changesMax).map(({ path, before, after }) => (
          <div key={JSON.stringify(path)} className="fact">
            <dt>{label(path)}</dt>
            <dd className="past-change">
              {before === undefined ? (
                <span className="quiet">{t("past.absent")}</span>
              ) : (
                <del>
                  <ValueOf value={before} />
                </del>
              )}
              <ArrowRight aria-hidden />
              <span className="visually-hidden">{t("history.to")}</span>
              {after === undefined ? (
                <span className="quiet">{t("past.absent")}</span>
              ) : (
                <ins>
                  <ValueOf value={after} />
                </ins>
              )}
            </dd>
          </div>
        ))}
      </dl>
      {of.length > changesMax && <p className="quiet">{t("past.more", { count: of.length - changesMax, number: formatNumber(of.length - changesMax) })}</p>}
    </>
  );
}

/** In place of data that is not there any more; the reason is the service's, in English. */
function NotKept({ fault, title, retry }: { fault: unknown; title: string; retry: () => void }) {
  const { t } = useTranslation();
  if (!(fault instanceof ServiceError && fault.status === 409)) {
    return <LoadFault fault={fault} retry={retry} />;
  }
  return (
    <Notice tone="info" title={title}>
      <p>{t("past.notKeptText")}</p>
      {fault.reason !== "" && (
        <p className="quiet" lang="en">
          {fault.reason}
        </p>
      )}
    </Notice>
  );
}
