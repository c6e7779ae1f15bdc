import type { TFunction } from "i18next";
import { useQueryClient } from "@tanstack/react-query";
import { ClipboardCheck, FileText, Plus, Trash2 } from "lucide-react";
import { lazy, Suspense, useState } from "react";
import { useTranslation } from "react-i18next";
import { messageFor } from "../api/http";
import { categories, type FormQuery, type Kind } from "../api/portal";
import { deleteForm, noWorkflow } from "../api/runtime";
import type { Category, Form } from "../api/types";
import { Button } from "../kit/Button";
import { type ColumnOf, CursorPager, DataTable } from "../kit/DataTable";
import { FilterMenu, SearchBox } from "../kit/ListTools";
import { Empty, LoadFault, Notice, Skeleton } from "../kit/Notice";
import { Switch } from "../kit/Switch";
import { Time } from "../kit/Time";
import { Value, valueText } from "../kit/Value";
import { Link, useQueryPart } from "../navigate";
import { formsAsked } from "./asked";
import { FormStatus } from "./FormStatus";
import { takeNews } from "./news";
import { useForms, useWorkflows } from "./queries";
import { formWorkflow, isSubmitted, sharedColumns, titleOf, valuesOf } from "./statusWords";

const DeleteDialog = lazy(() => import("../runtime/DeleteDialog"));

interface FormsTabProps {
  list: "requests" | "checklists";
  kind: Kind;
  /** Null when the caller may make none. */
  onNew: (() => void) | null;
}

interface News {
  tone: "good" | "bad";
  text: string;
}

/** What the caller has created, or the caller's checklists, in three parts. Looked for, sorted and cut by the service. */
export function FormsTab({ list, kind, onNew }: FormsTabProps) {
  const { t } = useTranslation();
  const queries = useQueryClient();
  const [asked, change] = useQueryPart();
  const [news, setNews] = useState<News | null>(() => newsOf(takeNews()));
  const [deleting, setDeleting] = useState<Form | null>(null);
  const query = formsAsked(asked, kind);
  const { category, q, workflowId, sort, cursor } = query;
  const page = useForms(query);
  const counts = useCounts(query, page.data?.count);
  const workflows = useWorkflows(kind === "forms");
  const forms = page.data?.forms ?? [];
  const narrowed = q !== "" || workflowId !== "";
  const clear = { q: "", workflow: "", cursor: "" };

  const remove = async (form: Form) => {
    setDeleting(null);
    try {
      await deleteForm({ workflowId: formWorkflow(form) || noWorkflow, instanceId: form.id });
      setNews({ tone: "good", text: t("form.deleted", { name: titleOf(form) }) });
    } catch (fault) {
      setNews({ tone: "bad", text: messageFor(fault) });
    }
    await queries.invalidateQueries({ queryKey: ["forms"] });
  };
  const options = [...(workflows.data ?? []), { id: noWorkflow, name: t("list.noWorkflow") }];
  if (workflowId !== "" && !options.some(({ id }) => id === workflowId)) {
    options.push({ id: workflowId, name: workflowId });
  }
  return (
    <>
      <div className="tools">
        <Switch
          label={t("work.show.label")}
          options={categories.map((key) => ({ key, label: t(`work.show.${key}`), count: counts[key] }))}
          selected={category}
          onSelect={(key) => change({ show: key === "current" ? "" : key, cursor: "" })}
        />
        <div className="tools-end">
          <SearchBox label={t("list.searchIn", { list: t(`work.tabs.${list}`) })} value={q} onSearch={(words) => change({ q: words, cursor: "" }, "replace")} />
          {kind === "forms" && (
            <FilterMenu
              groups={[{ key: "workflow", title: t("tasks.workflow"), options }]}
              chosen={{ workflow: workflowId === "" ? [] : [workflowId] }}
              onChoose={(_, ids) => change({ workflow: ids.at(-1) ?? "", cursor: "" })}
              onClear={() => change({ workflow: "", cursor: "" })}
            />
          )}
        </div>
      </div>
      <div role="status" className="news">
        {news && <Notice tone={news.tone} title={news.text} />}
        {narrowed && typeof page.data?.count === "number" && <span className="visually-hidden">{t("list.found", { count: page.data.count })}</span>}
      </div>
      {page.isPending && <Skeleton rows={6} />}
      {page.isError && !page.data && <LoadFault fault={page.error} retry={() => void page.refetch()} />}
      {forms.length > 0 && (
        <DataTable
          label={t(`work.tabs.${list}`)}
          columns={columnsOf(t, category, forms, kind === "forms", setDeleting)}
          rows={forms}
          rowKey={(form) => form.id}
          sort={sort}
          onSort={(to) => change({ sort: to === "-when" || to === "-name" ? "" : to, cursor: "" }, "replace")}
          stale={page.isPlaceholderData}
        />
      )}
      {page.data && forms.length === 0 && page.data.next === null && (
        <Empty
          sign={kind === "forms" ? <FileText aria-hidden /> : <ClipboardCheck aria-hidden />}
          title={narrowed ? t("list.noResults") : t(`list.empty.${list}.${category}.title`)}
          text={narrowed ? t("list.noResultsText") : t(`list.empty.${list}.${category}.text`)}
          action={narrowed ? <Button onPress={() => change(clear)}>{t("list.clearAll")}</Button> : category === "current" && onNew && <NewButton kind={kind} onNew={onNew} />}
        />
      )}
      <CursorPager cursor={cursor} next={page.data?.next ?? null} total={typeof page.data?.count === "number" ? t("list.total", { count: page.data.count }) : ""} onTurn={(to) => change({ cursor: to })} />
      {deleting && (
        <Suspense>
          <DeleteDialog name={titleOf(deleting)} onClose={() => setDeleting(null)} onDelete={() => void remove(deleting)} />
        </Suspense>
      )}
    </>
  );
}

const newsOf = (text: string): News | null => (text === "" ? null : { tone: "good", text });

/** How many there are of each category; what is shown is known already. */
function useCounts(query: FormQuery, shown: number | null | undefined): Record<Category, number | undefined> {
  const of = (category: Category) => ({ ...query, category, cursor: "", sort: "-when", limit: 1 });
  const counts = { current: useForms(of("current")).data?.count, submitted: useForms(of("submitted")).data?.count, archived: useForms(of("archived")).data?.count };
  counts[query.category] = shown ?? counts[query.category];
  return { current: counts.current ?? undefined, submitted: counts.submitted ?? undefined, archived: counts.archived ?? undefined };
}

function NewButton({ kind, onNew }: { kind: Kind; onNew: () => void }) {
  const { t } = useTranslation();
  return (
    <Button kind="main" onPress={onNew}>
      <Plus aria-hidden />
      {kind === "forms" ? t("work.newForm") : t("work.newChecklist")}
    </Button>
  );
}

type Translate = TFunction;

function columnsOf(t: Translate, category: Category, forms: Form[], several: boolean, onDelete: (form: Form) => void): ColumnOf<Form>[] {
  const shared = sharedColumns(forms);
  const columns: ColumnOf<Form>[] = [
    {
      key: "name",
      title: several ? t("list.request") : t("list.name"),
      sorts: true,
      head: true,
      cell: (form) => (
        <>
          <Link to={form.fullPath} className="row-link">
            <span className="row-short">{titleOf(form)}</span>
          </Link>
          <span className="row-id" title={form.id}>
            {shortId(form.submissionId || form.id)}
          </span>
          <RowText form={form} shared={shared.length > 0} />
        </>
      ),
    },
    { key: "status", title: t("list.status"), cell: (form) => <FormStatus form={form} submitted={category !== "current"} archived={category === "archived"} /> },
    ...shared.map(
      ({ path, label }): ColumnOf<Form> => ({ key: path, title: label, named: true, cell: (form) => <Value value={valuesOf(form).find((column) => column.path === path)?.value} /> }),
    ),
    { key: "when", title: t("list.created"), sorts: true, narrow: true, named: true, cell: (form) => <Time at={form.when} /> },
  ];
  if (category === "current") {
    columns.push({
      key: "delete",
      title: t("list.actions"),
      quietTitle: true,
      narrow: true,
      cell: (form) =>
        !isSubmitted(form) && (
          <span className="row-actions">
            <Button kind="quiet" round small aria-label={t("form.deleteNamedShort", { name: titleOf(form) })} onPress={() => onDelete(form)}>
              <Trash2 aria-hidden />
            </Button>
          </span>
        ),
    });
  }
  return columns;
}

/** Which form it is, where the title does not say so, and what the definition shows of it. */
function RowText({ form, shared }: { form: Form; shared: boolean }) {
  const said = shared ? [] : valuesOf(form).map((column) => `${column.label}: ${valueText(column.value)}`);
  const parts = [...(titleOf(form) === form.name ? [] : [form.name]), ...said];
  return parts.length === 0 ? null : <span className="row-text">{parts.join(" · ")}</span>;
}

/** The end of an identifier, which tells two of a day apart. */
const shortId = (id: string) => (id.length > 12 ? `…${id.slice(-6)}` : id);
