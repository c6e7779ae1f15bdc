import { KeyRound, Plus } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { type Caller, privilege } from "../api/types";
import { Badge } from "../kit/Badge";
import { Button } from "../kit/Button";
import type { ColumnOf } from "../kit/DataTable";
import { SearchBox } from "../kit/ListTools";
import { Switch } from "../kit/Switch";
import { Time } from "../kit/Time";
import { Link, useQueryPart } from "../navigate";
import { pathOf } from "./address";
import { type Credential, type CredentialKind, revoke } from "./api";
import { NewToken } from "./NewToken";
import { Confirm, Listed, useDeed } from "./parts";
import { useCredentials } from "./queries";
import { useText } from "./text";

const isOver = ({ revoked, expires }: Credential) => revoked !== null || (expires !== null && Date.parse(expires) < Date.now());

/** Who is signed in, and with which tokens programs are. Who is no administrator has to do with own tokens only. */
export function CredentialsSection({ caller }: { caller: Caller }) {
  const t = useText();
  const { t: common } = useTranslation();
  const [asked, change] = useQueryPart();
  const isAdmin = caller.privileges.includes(privilege.admin);
  const kind: CredentialKind = !isAdmin || asked.get("kind") === "tokens" ? "tokens" : "sessions";
  const user = asked.get("user") ?? "";
  const credentials = useCredentials(kind, user, asked.get("cursor") ?? "");
  const { news, deed } = useDeed();
  const [ending, setEnding] = useState<Credential | null>(null);
  const [isNew, setNew] = useState(false);
  const nameOf = (of: Credential) => `${of.user}, ${of.note || of.id}`;
  const columns: ColumnOf<Credential>[] = [
    {
      key: "user",
      title: t("credentials.user"),
      head: true,
      cell: (of) => (
        <>
          {isAdmin ? (
            <Link to={pathOf("users", { user: of.user })} className="row-link">
              {of.user}
            </Link>
          ) : (
            <span className="ops-strong">{of.user}</span>
          )}
          <span className="row-text">{of.note}</span>
          <span className="row-text ops-code">{of.id}</span>
        </>
      ),
    },
    { key: "state", title: t("outbox.state"), narrow: true, cell: (of) => <Badge tone={isOver(of) ? "neutral" : "good"}>{t(isOver(of) ? "credentials.over" : "credentials.valid")}</Badge> },
    { key: "used", title: t("credentials.used"), narrow: true, named: true, cell: (of) => (of.lastUsed === null ? <span className="quiet">{t("schedules.never")}</span> : <Time at={of.lastUsed} />) },
    { key: "created", title: t("credentials.created"), narrow: true, named: true, cell: (of) => <Time at={of.created} /> },
    { key: "expires", title: t("credentials.expires"), narrow: true, named: true, cell: (of) => (of.expires === null ? <span className="quiet">{t("schedules.never")}</span> : <Time at={of.expires} as="due" />) },
    {
      key: "actions",
      title: t("actions"),
      narrow: true,
      cell: (of) =>
        !isOver(of) && (
          <Button small aria-label={t("actionOf", { action: t(`credentials.end.${kind}`), name: nameOf(of) })} onPress={() => setEnding(of)}>
            {t(`credentials.end.${kind}`)}
          </Button>
        ),
    },
  ];
  return (
    <>
      <div className="tools">
        {isAdmin && <Switch label={t("outbox.show")} options={(["sessions", "tokens"] as const).map((key) => ({ key, label: t(`credentials.${key}`) }))} selected={kind} onSelect={(to) => change({ kind: to === "tokens" ? to : "", cursor: "" })} />}
        <div className="tools-end">
          {isAdmin && <SearchBox label={t("credentials.of")} placeholder={t("credentials.of")} value={user} onSearch={(to) => change({ user: to.trim(), cursor: "" }, "replace")} />}
          {kind === "tokens" && (
            <Button kind="main" onPress={() => setNew(true)}>
              <Plus aria-hidden />
              {t("credentials.new")}
            </Button>
          )}
        </div>
      </div>
      {news}
      <Listed
        label={t(`credentials.${kind}`)}
        query={credentials}
        rows={({ list }) => list}
        next={({ next }) => next}
        columns={columns}
        rowKey={({ id }) => id}
        empty={{ sign: <KeyRound aria-hidden />, title: t(`credentials.empty.${kind}`), text: t(user === "" ? `credentials.emptyText.${kind}` : "credentials.emptyOf", { user }) }}
      />
      {isNew && <NewToken caller={caller} isAdmin={isAdmin} user={user || caller.id} onClose={() => setNew(false)} />}
      {ending && (
        <Confirm
          title={t(`credentials.endTitle.${kind}`)}
          text={t(`credentials.endText.${kind}`, { user: ending.user })}
          yes={t(`credentials.end.${kind}`)}
          no={common("cancel")}
          danger
          onYes={() => deed(() => revoke(kind, ending.id), t(`credentials.ended.${kind}`, { name: nameOf(ending) }), t("credentials.failed", { name: nameOf(ending) }))}
          onClose={() => setEnding(null)}
        />
      )}
    </>
  );
}
