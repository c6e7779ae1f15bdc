import { useCallback, useEffect, useMemo, useState } from "react";
import { messageFor } from "../api/http";
import { categories, type Kind, loadLists, loadRoles } from "../api/portal";
import { type Caller, type Category, privilege } from "../api/types";
import { go, useAddress } from "../navigate";
import { Icon } from "../ui/Icon";
import { LoadFault, Notice, Skeleton } from "../ui/Notice";
import { PageTitle } from "../ui/Page";
import { Tabs } from "../ui/Tabs";
import { useLoaded } from "../ui/useLoaded";
import { FormList } from "./FormList";
import { searchForms } from "./match";
import { NewDialog } from "./NewDialog";

const kindNames: Record<Kind, { many: string; one: string }> = {
  forms: { many: "Forms", one: "form" },
  checklists: { many: "Checklists", one: "checklist" },
};

const categoryNames: Record<Category, string> = { current: "Current", submitted: "Submitted", archived: "Archived" };

/** The caller's forms and checklists. Which of them is shown stands in the address. */
export function PortalPage({ caller }: { caller: Caller }) {
  const kinds = kindsOf(caller);
  const address = useAddress();
  const asked = new URL(address, window.location.href).searchParams;
  const kind: Kind = asked.get("kind") === "checklists" && kinds.includes("checklists") ? "checklists" : (kinds[0] ?? "forms");
  const category = categories.find((name) => name === asked.get("show")) ?? "current";

  if (kinds.length === 0) {
    return (
      <>
        <PageTitle tab="Forms">Your forms</PageTitle>
        <Notice tone="info" title="You do not have access to the form portal.">
          <p>To get access, ask your administrator.</p>
        </Notice>
      </>
    );
  }
  return (
    <>
      <div className="page-head">
        <PageTitle tab={kindNames[kind].many}>Your {kindNames[kind].many.toLowerCase()}</PageTitle>
        {kinds.length > 1 && <KindSwitch kinds={kinds} kind={kind} onSelect={(to) => go(addressOf(to, category))} />}
      </div>
      <Lists key={kind} kind={kind} category={category} creatable={mayCreate(caller, kind)} />
    </>
  );
}

/** Without a privilege to make anything, forms of earlier days can still be seen. */
function kindsOf(caller: Caller): Kind[] {
  if (!caller.privileges.includes(privilege.portal)) {
    return [];
  }
  const kinds = (["forms", "checklists"] as Kind[]).filter((kind) => mayCreate(caller, kind));
  return kinds.length > 0 ? kinds : ["forms", "checklists"];
}

const mayCreate = (caller: Caller, kind: Kind) =>
  caller.privileges.includes(kind === "forms" ? privilege.form : privilege.checklist);

const addressOf = (kind: Kind, category: Category) =>
  `?${new URLSearchParams({ ...(kind === "forms" ? {} : { kind }), ...(category === "current" ? {} : { show: category }) })}`.replace(/^\?$/, "");

function KindSwitch({ kinds, kind, onSelect }: { kinds: Kind[]; kind: Kind; onSelect: (kind: Kind) => void }) {
  return (
    <div className="switch" role="group" aria-label="Type">
      {kinds.map((each) => (
        <button key={each} type="button" className="switch-part" aria-pressed={each === kind} onClick={() => onSelect(each)}>
          <Icon name={each === "forms" ? "form" : "list"} />
          {kindNames[each].many}
        </button>
      ))}
    </div>
  );
}

interface ListsProps {
  kind: Kind;
  category: Category;
  creatable: boolean;
}

/** How old lists may be before coming back to the window loads them again. */
const staleAfter = 20_000;

function Lists({ kind, category, creatable }: ListsProps) {
  const lists = useLoaded(useCallback((signal: AbortSignal) => loadLists(kind, signal), [kind]));
  const roles = useLoaded(loadRoles);
  const [query, setQuery] = useState("");
  const [creating, setCreating] = useState(false);
  useReloadOnReturn(lists.reload);

  const roleNames = useMemo(() => {
    const info = roles.loaded.state === "ready" ? roles.loaded.value : { formRoles: [], checklistRoles: [] };
    return new Map([...info.formRoles, ...info.checklistRoles].map((role) => [role.id, role.name]));
  }, [roles.loaded]);
  const roleName = (id: string) => roleNames.get(id) ?? id;

  const ready = lists.loaded.state === "ready" ? lists.loaded.value : undefined;
  const found = ready && searchForms(ready[category], query, roleName);
  const newButton = creatable && (
    <button type="button" className="button button-main" onClick={() => setCreating(true)}>
      <Icon name="plus" />
      New {kindNames[kind].one}
    </button>
  );
  return (
    <>
      <div className="tools">
        <label className="search">
          <span className="visually-hidden">Search in {kindNames[kind].many.toLowerCase()}</span>
          <Icon name="search" />
          <input type="search" placeholder="Search" value={query} onChange={(event) => setQuery(event.target.value)} />
        </label>
        {newButton}
      </div>
      <Tabs
        label={kindNames[kind].many}
        tabs={categories.map((key) => ({ key, label: categoryNames[key], count: ready?.[key].length }))}
        selected={category}
        onSelect={(to) => go(addressOf(kind, to), "replace")}
      >
        <p className="visually-hidden" role="status">
          {found && query !== "" && `${found.length} found`}
        </p>
        {lists.loaded.state === "loading" && <Skeleton label="Loading" rows={5} />}
        {lists.loaded.state === "failed" && <LoadFault message={messageFor(lists.loaded.fault)} retry={lists.reload} />}
        {found && found.length > 0 && <FormList key={category} category={category} forms={found} roleName={roleName} />}
        {found && found.length === 0 && (
          <Empty kind={kind} category={category} searched={query !== ""} action={category === "current" && query === "" && newButton} />
        )}
      </Tabs>
      {creating && <NewDialog kind={kind} roles={roles} onClose={() => setCreating(false)} />}
    </>
  );
}

function Empty({ kind, category, searched, action }: { kind: Kind; category: Category; searched: boolean; action: React.ReactNode }) {
  const things = kindNames[kind].many.toLowerCase();
  const words = searched
    ? { title: "No results", text: "Search looks for all words in the name, status, role and ID." }
    : {
        current: { title: `No current ${things}`, text: `${kindNames[kind].many} that you create are shown here until you submit them.` },
        submitted: { title: `No submitted ${things}`, text: `${kindNames[kind].many} that you have submitted are shown here with their status.` },
        archived: { title: `No archived ${things}`, text: `Completed ${things} are moved here automatically after some time.` },
      }[category];
  return (
    <div className="empty">
      <span className="empty-sign">
        <Icon name={kind === "forms" ? "form" : "list"} />
      </span>
      <p className="empty-title">{words.title}</p>
      <p>{words.text}</p>
      {action}
    </div>
  );
}

/** Others move workflows on: a list that was left for a while is loaded again. */
function useReloadOnReturn(reload: () => void) {
  useEffect(() => {
    let loadedAt = Date.now();
    const returned = () => {
      if (document.visibilityState === "visible" && Date.now() - loadedAt > staleAfter) {
        loadedAt = Date.now();
        reload();
      }
    };
    document.addEventListener("visibilitychange", returned);
    return () => document.removeEventListener("visibilitychange", returned);
  }, [reload]);
}
