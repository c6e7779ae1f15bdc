import { ScrollText } from "lucide-react";
import { useTranslation } from "react-i18next";
import { Badge } from "../kit/Badge";
import { Button } from "../kit/Button";
import { type ColumnOf, DataTable } from "../kit/DataTable";
import { SearchBox } from "../kit/ListTools";
import { Empty, Notice } from "../kit/Notice";
import { Time } from "../kit/Time";
import { useQueryPart } from "../navigate";
import { formatNumber } from "../words";
import { type AuditRow, verifyAudit } from "./api";
import { Loaded, reasonFor, statusOf, useNews } from "./parts";
import { useAudit } from "./queries";
import { type Translate, useText } from "./text";

/** Who did what, the newest first. */
export function AuditSection() {
  const t = useText();
  const { t: common } = useTranslation();
  const [asked, change] = useQueryPart();
  const [actor = "", action = "", day = ""] = ["actor", "action", "since"].map((name) => asked.get(name) ?? "");
  const since = Number.isNaN(Date.parse(day)) ? "" : new Date(`${day}T00:00`).toISOString();
  const audit = useAudit({ actor, action, since });
  const { news, tell } = useNews();
  const isNarrowed = actor !== "" || action !== "" || since !== "";
  const verify = async () => {
    try {
      const { rows, broken } = await verifyAudit();
      tell(broken === null ? { tone: "good", title: t("audit.whole", { count: rows, number: formatNumber(rows) }) } : { tone: "bad", title: t("audit.broken"), detail: broken });
    } catch (fault) {
      tell({ tone: "bad", title: t("audit.notVerified"), detail: reasonFor(fault) });
    }
  };
  return (
    <>
      <div className="tools">
        <SearchBox label={t("audit.actor")} placeholder={t("audit.actor")} value={actor} onSearch={(to) => change({ actor: to.trim() }, "replace")} />
        <SearchBox label={t("audit.action")} placeholder={t("audit.actionExample")} value={action} onSearch={(to) => change({ action: to.trim() }, "replace")} />
        <label className="ops-pick">
          <span>{t("attention.since")}</span>
          <input type="date" value={day} onChange={({ target }) => change({ since: target.value }, "replace")} />
        </label>
        <div className="tools-end">
          <Button onPress={() => void verify()}>{t("audit.verify")}</Button>
        </div>
      </div>
      {news}
      {audit.isError && statusOf(audit.error) === 400 ? (
        <Notice tone="bad" title={t("audit.refused")} alert>
          <p>{reasonFor(audit.error)}</p>
        </Notice>
      ) : (
        <Loaded query={audit}>
          {({ pages }) => {
            const rows = pages.flatMap((page) => page.audit);
            return (
              <>
                {rows.length > 0 && <DataTable label={t("section.audit")} columns={columnsOf(t)} rows={rows} rowKey={({ hash }) => hash} stale={audit.isPlaceholderData} />}
                {rows.length === 0 && !audit.hasNextPage && (
                  <Empty
                    sign={<ScrollText aria-hidden />}
                    title={t("audit.emptyTitle")}
                    text={t("audit.emptyText")}
                    action={isNarrowed && <Button onPress={() => change({ actor: "", action: "", since: "" })}>{t("instances.clear")}</Button>}
                  />
                )}
                {audit.hasNextPage && (
                  <p className="ops-foot">
                    <Button isDisabled={audit.isFetchingNextPage} onPress={() => void audit.fetchNextPage()}>
                      {audit.isFetchingNextPage ? common("loading") : t("audit.more")}
                    </Button>
                  </p>
                )}
              </>
            );
          }}
        </Loaded>
      )}
    </>
  );
}

const columnsOf = (t: Translate): ColumnOf<AuditRow>[] => [
  {
    key: "action",
    title: t("audit.action"),
    head: true,
    cell: ({ action, count }) => (
      <>
        <Badge tone={action.endsWith(".refuse") ? "bad" : /\.(delete|revoke|remove|drop|cancel|stop)$/.test(action) ? "waiting" : "neutral"}>{action}</Badge>
        {count !== undefined && <span className="row-id">{t("incidents.unnamed", { count, number: formatNumber(count) })}</span>}
      </>
    ),
  },
  { key: "actor", title: t("audit.actor"), named: true, cell: ({ actor }) => actor || <span className="quiet">{t("audit.unknown")}</span> },
  { key: "target", title: t("audit.target"), named: true, cell: ({ target }) => <code>{target}</code> },
  { key: "ts", title: t("audit.when"), narrow: true, named: true, cell: ({ ts }) => <Time at={ts} as="exact" /> },
];
