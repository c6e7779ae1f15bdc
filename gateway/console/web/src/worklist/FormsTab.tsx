import { ClipboardCheck, FileText, Plus } from "lucide-react";
import { useTranslation } from "react-i18next";
import { messageFor } from "../api/http";
import { categories, type Kind } from "../api/portal";
import type { Category, Form, RoleInfo } from "../api/types";
import { Badge, type Tone } from "../kit/Badge";
import { Button } from "../kit/Button";
import { type ColumnOf, DataTable, Pager } from "../kit/DataTable";
import { FilterMenu, SearchBox } from "../kit/ListTools";
import { Empty, LoadFault, Skeleton } from "../kit/Notice";
import { Switch } from "../kit/Switch";
import { Time } from "../kit/Time";
import { Link, useQueryPart } from "../navigate";
import { readable } from "../words";
import { filterForms, searchForms, sortForms } from "./match";
import { useLists } from "./queries";

const pageSize = 50;

interface FormsTabProps {
  list: "requests" | "checklists";
  kind: Kind;
  roles: RoleInfo | undefined;
  /** Null when the caller may make none. */
  onNew: (() => void) | null;
}

/** The caller's forms, or checklists, in three parts. */
export function FormsTab({ list, kind, roles, onNew }: FormsTabProps) {
  const { t } = useTranslation();
  const [asked, change] = useQueryPart();
  const lists = useLists(kind);
  const category = categories.find((name) => name === asked.get("show")) ?? "current";
  const query = asked.get("q") ?? "";
  const sort = asked.get("sort") ?? "-when";
  const chosen = { template: asked.getAll("template"), status: asked.getAll("status") };
  const narrowed = query !== "" || chosen.template.length + chosen.status.length > 0;

  const roleNames = new Map([...(roles?.formRoles ?? []), ...(roles?.checklistRoles ?? [])].map((role) => [role.id, role.name]));
  const roleName = (id: string) => roleNames.get(id) ?? id;
  const all = lists.data?.[category] ?? [];
  const found = sortForms(filterForms(searchForms(all, query, roleName), chosen), sort, roleName);
  const pages = Math.max(1, Math.ceil(found.length / pageSize));
  const page = Math.min(pages, Math.max(1, Number(asked.get("page")) || 1));

  const turn = (to: number) => {
    change({ page: to === 1 ? "" : String(to) });
    window.scrollTo({ top: 0 });
  };
  const options = (texts: string[], name: (text: string) => string) => [...new Set(texts)].filter((text) => text !== "").toSorted().map((id) => ({ id, name: name(id) }));
  return (
    <>
      <div className="tools">
        <Switch
          label={t("work.show.label")}
          options={categories.map((key) => ({ key, label: t(`work.show.${key}`), count: lists.data?.[key].length }))}
          selected={category}
          onSelect={(key) => change({ show: key === "current" ? "" : key, page: "", status: [], template: [] })}
        />
        <div className="tools-end">
          <SearchBox label={t("list.searchIn", { list: t(`work.tabs.${list}`) })} value={query} onSearch={(q) => change({ q, page: "" }, "replace")} />
          <FilterMenu
            groups={[
              { key: "template", title: t("list.template"), options: options(all.map((form) => form.name), (name) => name) },
              { key: "status", title: t("list.status"), options: options(all.map((form) => form.status), readable) },
            ]}
            chosen={chosen}
            onChoose={(group, ids) => change({ [group]: ids, page: "" })}
            onClear={() => change({ template: [], status: [], page: "" })}
          />
        </div>
      </div>
      <p className="visually-hidden" role="status">
        {narrowed && lists.data && t("list.found", { count: found.length })}
      </p>
      {lists.isPending && <Skeleton rows={6} />}
      {lists.isError && !lists.data && <LoadFault message={messageFor(lists.error)} retry={() => void lists.refetch()} />}
      {lists.data && found.length > 0 && (
        <>
          <DataTable
            label={t(`work.tabs.${list}`)}
            columns={columnsOf(category, t, roleName)}
            rows={found.slice((page - 1) * pageSize, page * pageSize)}
            rowKey={(form) => form.id}
            sort={sort}
            onSort={(to) => change({ sort: to === "-when" ? "" : to, page: "" }, "replace")}
          />
          <Pager page={page} size={pageSize} total={found.length} onPage={turn} />
        </>
      )}
      {lists.data && found.length === 0 && (
        <Empty
          sign={kind === "forms" ? <FileText aria-hidden /> : <ClipboardCheck aria-hidden />}
          title={narrowed ? t("list.noResults") : t(`list.empty.${list}.${category}.title`)}
          text={narrowed ? t("list.noResultsText") : t(`list.empty.${list}.${category}.text`)}
          action={
            narrowed ? (
              <Button onPress={() => change({ q: "", template: [], status: [], page: "" })}>{t("list.clearAll")}</Button>
            ) : (
              onNew &&
              category === "current" && (
                <Button kind="main" onPress={onNew}>
                  <Plus aria-hidden />
                  {kind === "forms" ? t("work.newForm") : t("work.newChecklist")}
                </Button>
              )
            )
          }
        />
      )}
    </>
  );
}

type Translate = ReturnType<typeof useTranslation>["t"];

function columnsOf(category: Category, t: Translate, roleName: (id: string) => string): ColumnOf<Form>[] {
  return [
    {
      key: "name",
      title: t("list.name"),
      sorts: true,
      head: true,
      cell: (form) => (
        <>
          <Link to={form.fullPath} className="row-link">
            {form.name}
          </Link>
          <span className="row-id" title={form.id}>
            {shortId(form.submissionId || form.id)}
          </span>
        </>
      ),
    },
    { key: "status", title: t("list.status"), sorts: true, cell: (form) => <FormStatus form={form} category={category} /> },
    { key: "role", title: t("list.role"), sorts: true, cell: (form) => roleName(form.role) },
    { key: "when", title: t("list.created"), sorts: true, narrow: true, named: true, cell: (form) => <Time at={form.when} /> },
  ];
}

/** The end of an identifier, which tells two of a day apart. */
const shortId = (id: string) => (id.length > 12 ? `…${id.slice(-6)}` : id);

const toneOfCategory: Record<Category, Tone> = { current: "active", submitted: "active", archived: "neutral" };

function FormStatus({ form, category }: { form: Form; category: Category }) {
  const { t } = useTranslation();
  const names = form.status === "" ? [category === "current" ? t("form.draft") : t("form.statusSubmitted")] : form.status.split(", ").map(readable);
  return (
    <span className="badges">
      {names.map((name) => (
        <Badge key={name} tone={toneOfCategory[category]}>
          {name}
        </Badge>
      ))}
    </span>
  );
}

