import { CircleCheck } from "lucide-react";
import type { ColumnOf } from "../kit/DataTable";
import { Notice } from "../kit/Notice";
import { Person } from "../kit/Person";
import { Time } from "../kit/Time";
import { Link } from "../navigate";
import { formatNumber } from "../words";
import { pathOf } from "./address";
import { type Waiting, waitingFor } from "./attention";
import { Listed } from "./parts";
import { useEveryTask } from "./queries";
import { useText } from "./text";

/** As many tasks as one request answers. */
const countedMax = 1000;

/** How many tasks wait for whom, and since when. */
export function TaskPeople() {
  const t = useText();
  const tasks = useEveryTask({ scope: "every", q: "", sort: "created", workflowId: "", cursor: "", limit: countedMax });
  const columns: ColumnOf<Waiting>[] = [
    {
      key: "who",
      title: t("tasks.who"),
      head: true,
      cell: (of) => (
        <Link to={pathOf("tasks", { sort: "created", ...(of.user === "" ? {} : { filter: JSON.stringify({ assignee: of.user }) }) })} className="row-link">
          {of.user === "" ? of.who : <Person name={of.who} />}
        </Link>
      ),
    },
    { key: "count", title: t("tasks.open"), narrow: true, named: true, end: true, cell: (of) => formatNumber(of.count) },
    { key: "overdue", title: t("tasks.overdue"), narrow: true, named: true, end: true, cell: (of) => <span className={of.overdue > 0 ? "overdue" : undefined}>{formatNumber(of.overdue)}</span> },
    { key: "oldest", title: t("tasks.oldest"), narrow: true, named: true, cell: (of) => <Time at={of.oldest} /> },
  ];
  return (
    <>
      <Listed
        label={t("tasks.people")}
        query={tasks}
        rows={(page) => waitingFor(page.tasks, new Date().toISOString(), t)}
        columns={columns}
        rowKey={({ who, user }) => `${user} ${who}`}
        empty={{ sign: <CircleCheck aria-hidden />, title: t("tasks.emptyTitle"), text: t("tasks.emptyText") }}
      />
      {tasks.data?.next && <Notice tone="info" title={t("tasks.cut", { count: countedMax })} />}
    </>
  );
}
