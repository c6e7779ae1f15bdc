import { ChevronLeft, Users } from "lucide-react";
import { type FormEvent, useState } from "react";
import { Badge } from "../kit/Badge";
import { Button } from "../kit/Button";
import type { ColumnOf } from "../kit/DataTable";
import { Notice } from "../kit/Notice";
import { Person } from "../kit/Person";
import { Switch } from "../kit/Switch";
import { Link, useQueryPart } from "../navigate";
import { readable } from "../words";
import { pathOf } from "./address";
import { askPermission, type Role, type User } from "./api";
import { Listed, Loaded, reasonFor } from "./parts";
import { useRoles, useUser, useUsers } from "./queries";
import { useText } from "./text";

/** Who may use the service and as what; inside, one user. */
export function UsersSection() {
  const t = useText();
  const [asked, change] = useQueryPart();
  const kind = asked.get("kind") === "roles" ? "roles" : "users";
  return (
    <>
      <div className="tools">
        <Switch label={t("outbox.show")} options={(["users", "roles"] as const).map((key) => ({ key, label: t(`users.${key}`) }))} selected={kind} onSelect={(to) => change({ kind: to === "roles" ? to : "", cursor: "" })} />
      </div>
      {kind === "roles" ? <Roles /> : <UserList cursor={asked.get("cursor") ?? ""} />}
    </>
  );
}

/** Names of roles or privileges, in one line where there is room. */
const Names = ({ of }: { of: readonly string[] }) => (of.length === 0 ? <span className="quiet">–</span> : <>{of.join(", ")}</>);

function UserList({ cursor }: { cursor: string }) {
  const t = useText();
  const columns: ColumnOf<User>[] = [
    {
      key: "name",
      title: t("users.user"),
      head: true,
      cell: (of) => (
        <>
          <Link to={pathOf("users", { user: of.id })} className="row-link">
            <Person name={of.name || of.id} />
          </Link>{" "}
          {of.disabled && <Badge>{t("users.disabled")}</Badge>}
          <span className="row-text">{[of.id, of.email ?? ""].filter((part) => part !== "").join(" · ")}</span>
        </>
      ),
    },
    { key: "roles", title: t("users.roles"), named: true, cell: (of) => <Names of={of.roles.map(readable)} /> },
    { key: "privileges", title: t("users.privileges"), named: true, cell: (of) => <Names of={of.privileges.map(({ id }) => id)} /> },
  ];
  return (
    <Listed
      label={t("section.users")}
      query={useUsers(cursor)}
      rows={({ users }) => users}
      next={({ next }) => next}
      columns={columns}
      rowKey={({ id }) => id}
      empty={{ sign: <Users aria-hidden />, title: t("users.emptyTitle"), text: t("users.emptyText") }}
    />
  );
}

function Roles() {
  const t = useText();
  const columns: ColumnOf<Role>[] = [
    {
      key: "role",
      title: t("users.role"),
      head: true,
      cell: (of) => (
        <>
          <span className="ops-strong">{of.name || readable(of.id)}</span>
          <span className="row-text">{of.id}</span>
        </>
      ),
    },
    {
      key: "users",
      title: t("users.users"),
      named: true,
      cell: (of) =>
        of.users.length === 0 ? (
          <span className="quiet">{t("users.nobody")}</span>
        ) : (
          <span className="ops-links">
            {of.users.map((id) => (
              <Link key={id} to={pathOf("users", { user: id })}>
                {id}
              </Link>
            ))}
          </span>
        ),
    },
    { key: "privileges", title: t("users.privileges"), named: true, cell: (of) => <Names of={of.privileges} /> },
  ];
  return <Listed label={t("users.roles")} query={useRoles()} rows={(list) => list} columns={columns} rowKey={({ id }) => id} empty={{ sign: <Users aria-hidden />, title: t("users.noRoles"), text: t("users.emptyText") }} />;
}

/** One user: what the user has, why, and whether an event is allowed. */
export function UserInside({ id }: { id: string }) {
  const t = useText();
  return (
    <>
      <p className="trail">
        <Link to={pathOf("users")}>
          <ChevronLeft aria-hidden />
          {t("section.users")}
        </Link>
      </p>
      <Loaded query={useUser(id)}>
        {(of) => (
          <>
            <div className="ops-head">
              <div className="ops-title-line">
                <h2 id="section-title" tabIndex={-1}>{of.name || of.id}</h2>
                {of.disabled && <Badge>{t("users.disabled")}</Badge>}
                <span className="ops-title-end">
                  <Link to={pathOf("credentials", { user: of.id })} className="button button-plain">
                    {t("section.credentials")}
                  </Link>
                  <Link to={pathOf("audit", { actor: of.id })} className="button button-plain">
                    {t("section.audit")}
                  </Link>
                </span>
              </div>
              <p className="ops-facts">{[of.id, of.email ?? "", of.roles.map(readable).join(", ")].filter((part) => part !== "").map((part) => <span key={part}>{part}</span>)}</p>
            </div>
            <div className="ops-pair">
              <section aria-labelledby="privileges-title">
                <h3 id="privileges-title">{t("users.privileges")}</h3>
                {of.privileges.length === 0 ? (
                  <p className="quiet">{t("users.noPrivileges")}</p>
                ) : (
                  <dl className="card ops-dl">
                    {of.privileges.map(({ id: privilege, from }) => (
                      <div key={privilege}>
                        <dt>
                          <code>{privilege}</code>
                        </dt>
                        <dd>{from.map((each) => (each === "user" ? t("users.own") : t("users.byRole", { role: readable(each.replace(/^role:/, "")) }))).join(", ")}</dd>
                      </div>
                    ))}
                  </dl>
                )}
              </section>
              <Permission key={of.id} of={of} />
            </div>
          </>
        )}
      </Loaded>
    </>
  );
}

const asks = ["workflowId", "instanceId", "event"] as const;

/** Whether the user may send an event to an instance, and why. */
function Permission({ of }: { of: User }) {
  const t = useText();
  const [typed, setTyped] = useState({ workflowId: "", instanceId: "", event: "" });
  const [answer, setAnswer] = useState<{ allowed: boolean | null; why: string[] } | null>(null);
  const ask = async (submitted: FormEvent) => {
    submitted.preventDefault();
    try {
      setAnswer(await askPermission(of.id, typed, typed.event));
    } catch (fault) {
      setAnswer({ allowed: null, why: [reasonFor(fault)] });
    }
  };
  return (
    <section aria-labelledby="can-title">
      <h3 id="can-title">{t("users.can")}</h3>
      <form className="card ops-card" onSubmit={(submitted) => void ask(submitted)}>
        {asks.map((key) => (
          <label key={key} className="field">
            <span className="label">{t(`users.asks.${key}`)}</span>
            <input type="text" autoComplete="off" autoCapitalize="none" spellCheck={false} value={typed[key]} onChange={({ target }) => setTyped({ ...typed, [key]: target.value.trim() })} />
          </label>
        ))}
        <div>
          <Button type="submit" kind="main" isDisabled={asks.some((key) => typed[key] === "")}>
            {t("users.ask")}
          </Button>
        </div>
        {answer && (
          <div role="status">
            <Notice tone={answer.allowed ? "good" : "bad"} title={t(answer.allowed === null ? "users.unanswered" : answer.allowed ? "users.allowed" : "users.refused", { name: of.name || of.id })}>
              <ul className="ops-why">
                {answer.why.map((line) => (
                  <li key={line}>{line}</li>
                ))}
              </ul>
            </Notice>
          </div>
        )}
      </form>
    </section>
  );
}
