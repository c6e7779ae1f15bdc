import { ClipboardCheck, FilePlus2, Plus } from "lucide-react";
import { lazy, Suspense, useState } from "react";
import { useTranslation } from "react-i18next";
import type { Kind } from "../api/portal";
import type { Caller } from "../api/types";
import { Button } from "../kit/Button";
import { Item, MenuBox } from "../kit/Menu";
import { PageTitle } from "../kit/Page";
import { Tabs } from "../kit/Tabs";
import { useQueryPart } from "../navigate";
import { formatCount } from "../words";
import { kindOf, mayCreate, tabsOf } from "./asked";
import { FormsTab } from "./FormsTab";
import { useRoles } from "./queries";
import { TasksTab } from "./TasksTab";
import { useTaskCount, useTaskWatch } from "./useTasks";

// Its dialog is not needed before somebody asks for it.
const NewDialog = lazy(() => import("./NewDialog"));

/** What a person has to do with, in tabs. Which of them is shown, and how, stands in the address. */
export function WorkPage({ caller }: { caller: Caller }) {
  const { t } = useTranslation();
  const [asked, change] = useQueryPart();
  const [creating, setCreating] = useState<Kind | null>(null);
  const waiting = useTaskCount();
  useTaskWatch();
  const keys = tabsOf(caller);
  const count = waiting.data?.count;
  const roles = useRoles(creating !== null);
  const tab = keys.find((key) => key === asked.get("tab")) ?? "waiting";
  const creatable = (["forms", "checklists"] as const).filter((kind) => mayCreate(caller, kind));

  return (
    <>
      <div className="page-head">
        <PageTitle tab={count || count === null ? t("tasks.tabCount", { shown: formatCount(count), title: t(`work.tabs.${tab}`) }) : t(`work.tabs.${tab}`)}>{t("work.title")}</PageTitle>
        <NewButton kinds={creatable} onNew={setCreating} />
      </div>
      <Tabs
        label={t("work.title")}
        tabs={keys.map((key) => ({ key, label: t(`work.tabs.${key}`), count: key === "waiting" ? count : undefined }))}
        selected={tab}
        onSelect={(key) => change({ tab: key === "waiting" ? "" : key, show: "", q: "", sort: "", scope: "", workflow: "", cursor: "" })}
      >
        {tab === "waiting" || tab === "decided" ? (
          <TasksTab key={tab} caller={caller} done={tab === "decided"} />
        ) : (
          <FormsTab key={tab} list={tab} kind={kindOf[tab]} onNew={creatable.includes(kindOf[tab]) ? () => setCreating(kindOf[tab]) : null} />
        )}
      </Tabs>
      {creating && (
        <Suspense>
          <NewDialog kind={creating} roles={roles} onClose={() => setCreating(null)} />
        </Suspense>
      )}
    </>
  );
}

function NewButton({ kinds, onNew }: { kinds: Kind[]; onNew: (kind: Kind) => void }) {
  const { t } = useTranslation();
  const words = { forms: t("work.newForm"), checklists: t("work.newChecklist") };
  const [only, another] = kinds;
  if (!only) {
    return null;
  }
  if (!another) {
    return (
      <Button kind="main" onPress={() => onNew(only)}>
        <Plus aria-hidden />
        {words[only]}
      </Button>
    );
  }
  return (
    <MenuBox
      label={t("work.new")}
      onAction={(key) => onNew(key as Kind)}
      trigger={
        <Button kind="main">
          <Plus aria-hidden />
          {t("work.new")}
        </Button>
      }
    >
      <Item id="forms" name={words.forms} sign={<FilePlus2 aria-hidden />} />
      <Item id="checklists" name={words.checklists} sign={<ClipboardCheck aria-hidden />} />
    </MenuBox>
  );
}
