import { useQueryClient } from "@tanstack/react-query";
import { LockKeyhole } from "lucide-react";
import { type ReactNode, useEffect, useRef, useState } from "react";
import { messageFor, ServiceError } from "../api/http";
import { privilege } from "../api/types";
import { Button } from "../kit/Button";
import { type ColumnOf, CursorPager, DataTable } from "../kit/DataTable";
import { Dialog } from "../kit/Dialog";
import { Empty, LoadFault, Notice, Skeleton } from "../kit/Notice";
import { useQueryPart } from "../navigate";
import { operationsKey, useWorkflowName } from "./queries";
import { useText } from "./text";

/** What somebody has done to something in a list. */
export interface Told {
  tone: "good" | "bad" | "info";
  title: string;
  detail?: string;
}

/** Tells what became of an action. The focus goes there: the button may be gone with its row. */
export function useNews(): { news: ReactNode; tell: (told: Told | null) => void } {
  const [told, tell] = useState<Told | null>(null);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (told) {
      box.current?.focus();
    }
  }, [told]);
  const news = told && (
    <div className="page-news">
      <Notice tone={told.tone} title={told.title} ref={box}>
        {told.detail && <p>{told.detail}</p>}
      </Notice>
    </div>
  );
  return { news, tell };
}

/** Does something, tells what became of it, and asks for the lists again. */
export function useDeed(): { news: ReactNode; deed: (work: () => Promise<unknown>, done: string, failed: string) => Promise<void> } {
  const { news, tell } = useNews();
  const queries = useQueryClient();
  const deed = async (work: () => Promise<unknown>, done: string, failed: string) => {
    try {
      await work();
      tell({ tone: "good", title: done });
    } catch (fault) {
      tell({ tone: "bad", title: failed, detail: reasonFor(fault) });
    }
    await queries.invalidateQueries({ queryKey: operationsKey });
  };
  return { news, deed };
}

/** The service's own words, which say more than a status to who runs it. */
export const reasonFor = (fault: unknown) => (fault instanceof ServiceError && fault.reason !== "" && fault.status !== 401 ? fault.reason : messageFor(fault));

export const statusOf = (fault: unknown) => (fault instanceof ServiceError ? fault.status : 0);

interface LoadedProps<T> {
  query: { data: T | undefined; error: unknown; isPending: boolean; refetch: () => unknown };
  children: (data: T) => ReactNode;
  rows?: number;
}

/** What was loaded, or in its place that it is on its way, was refused or failed. */
export function Loaded<T>({ query, children, rows = 6 }: LoadedProps<T>) {
  if (query.data !== undefined) {
    return children(query.data);
  }
  if (query.error) {
    return statusOf(query.error) === 403 ? <Refused /> : <LoadFault fault={query.error} retry={() => void query.refetch()} />;
  }
  return query.isPending ? <Skeleton rows={rows} /> : null;
}

interface ListedProps<D, T> {
  label: string;
  query: LoadedProps<D>["query"] & { isPlaceholderData: boolean };
  rows: (data: D) => T[];
  /** Where the next page begins. */
  next?: (data: D) => string | null | undefined;
  columns: ColumnOf<T>[];
  rowKey: (row: T) => string;
  /** In place of rows where there are none. */
  empty: { sign: ReactNode; title: string; text: string; action?: ReactNode };
}

/** A table of what was loaded, page by page; the place in the list is in the address. */
export function Listed<D, T>({ label, query, rows, next, columns, rowKey, empty }: ListedProps<D, T>) {
  const [asked, change] = useQueryPart();
  return (
    <Loaded query={query}>
      {(data) => (
        <>
          {rows(data).length === 0 ? <Empty {...empty} /> : <DataTable label={label} columns={columns} rows={rows(data)} rowKey={rowKey} stale={query.isPlaceholderData} />}
          <CursorPager cursor={asked.get("cursor") ?? ""} next={next?.(data) ?? null} onTurn={(to) => change({ cursor: to })} />
        </>
      )}
    </Loaded>
  );
}

export function Refused({ needed = privilege.workflows }: { needed?: string }) {
  const t = useText();
  return <Empty sign={<LockKeyhole aria-hidden />} title={t("refused.title")} text={t("refused.text", { privilege: needed })} />;
}

interface ConfirmProps {
  title: string;
  text: string;
  yes: string;
  no: string;
  danger?: boolean;
  onYes: () => Promise<void>;
  onClose: () => void;
}

/** Asks before something that cannot be taken back. */
export function Confirm({ title, text, yes, no, danger = false, onYes, onClose }: ConfirmProps) {
  const confirm = () => {
    onClose(); // before it is done: what becomes of it takes the focus, which an open dialog would keep
    void onYes();
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <p>{text}</p>
      <div className="dialog-foot">
        <Button onPress={onClose}>{no}</Button>
        <Button kind={danger ? "danger" : "main"} onPress={confirm}>
          {yes}
        </Button>
      </div>
    </Dialog>
  );
}

interface RepairProps {
  name: string;
  /** Undefined: there is nothing to retry. */
  onRetry: (() => void) | undefined;
  onDrop: () => void;
}

/** What can be done about something that has failed. */
export function RepairButtons({ name, onRetry, onDrop }: RepairProps) {
  const t = useText();
  return (
    <span className="row-actions">
      {onRetry && (
        <Button small aria-label={t("actionOf", { action: t("retry"), name })} onPress={onRetry}>
          {t("retry")}
        </Button>
      )}
      <Button small aria-label={t("actionOf", { action: t("drop"), name })} onPress={onDrop}>
        {t("drop")}
      </Button>
    </span>
  );
}

/** Which instance something is of. */
export function InstanceOf({ workflowId, instanceId }: { workflowId: string; instanceId: string }) {
  const nameOf = useWorkflowName();
  return (
    <>
      {nameOf(workflowId)}
      {instanceId !== "" && (
        <span className="row-id" title={instanceId}>
          {shortId(instanceId)}
        </span>
      )}
    </>
  );
}

/** The end of an identifier, which tells two of a day apart. */
export const shortId = (id: string) => (id.length > 12 ? `…${id.slice(-6)}` : id);
