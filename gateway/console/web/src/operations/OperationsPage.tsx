import "./operations.css";
import { Activity, AlarmClock, Archive, CalendarClock, CircleAlert, Cog, KeyRound, Layers, ListChecks, ListTodo, type LucideIcon, ScrollText, Send, TriangleAlert, Upload, Users, Workflow } from "lucide-react";
import { useEffect, useRef } from "react";
import { type Caller, privilege } from "../api/types";
import { PageTitle } from "../kit/Page";
import { Link, useQueryPart } from "../navigate";
import { formatNumber } from "../words";
import { useTaskWatch } from "../worklist/useTasks";
import { pathOf, type Section } from "./address";
import { pageSize } from "./api";
import { AuditSection } from "./AuditSection";
import { BackupsSection } from "./BackupsSection";
import { BulkSection } from "./BulkSection";
import { CredentialsSection } from "./CredentialsSection";
import { ExportsSection } from "./ExportsSection";
import { HealthSection } from "./HealthSection";
import { AttentionSection } from "./AttentionSection";
import { IncidentsSection } from "./IncidentsSection";
import { InspectSection } from "./InspectSection";
import { InstancesSection } from "./InstancesSection";
import { JobsSection } from "./JobsSection";
import { OutboxSection } from "./OutboxSection";
import { Refused } from "./parts";
import { useBulk, useExports, useHealth, useIncidents, useOutbox } from "./queries";
import { SchedulesSection } from "./SchedulesSection";
import { TasksSection } from "./TasksSection";
import { useText } from "./text";
import { TimersSection } from "./TimersSection";
import { UserInside, UsersSection } from "./UsersSection";
import { WorkflowsSection } from "./WorkflowsSection";

type Group = "first" | "instances" | "background" | "service" | "access";

interface SectionOf {
  key: Section;
  group: Group;
  sign: LucideIcon;
  /** Any of them is enough. */
  needs: readonly string[];
}

const forWorkflows = [privilege.workflows];
const forAdmins = [privilege.admin];
const forBoth = [...forWorkflows, ...forAdmins];

/** How often the menu asks how the server is. */
const watchEvery = 15_000;

/** The sections in their order: one more is a row here, a text and a component. */
const sections: readonly SectionOf[] = [
  { key: "attention", group: "first", sign: CircleAlert, needs: forWorkflows },
  { key: "workflows", group: "instances", sign: Workflow, needs: forWorkflows },
  { key: "instances", group: "instances", sign: Layers, needs: forWorkflows },
  { key: "tasks", group: "instances", sign: ListTodo, needs: forWorkflows },
  { key: "bulk", group: "instances", sign: ListChecks, needs: forWorkflows },
  { key: "incidents", group: "background", sign: TriangleAlert, needs: forWorkflows },
  { key: "jobs", group: "background", sign: Cog, needs: [privilege.workflows, privilege.jobs] },
  { key: "outbox", group: "background", sign: Send, needs: forWorkflows },
  { key: "timers", group: "background", sign: AlarmClock, needs: forWorkflows },
  { key: "schedules", group: "background", sign: CalendarClock, needs: forWorkflows },
  { key: "health", group: "service", sign: Activity, needs: forBoth },
  { key: "backups", group: "service", sign: Archive, needs: forBoth },
  { key: "exports", group: "service", sign: Upload, needs: forBoth },
  { key: "users", group: "access", sign: Users, needs: forAdmins },
  { key: "credentials", group: "access", sign: KeyRound, needs: [privilege.admin, privilege.tokens] },
  { key: "audit", group: "access", sign: ScrollText, needs: forAdmins },
];

/** For those who run the service. Which section is shown, and how, stands in the address. */
export default function OperationsPage({ caller }: { caller: Caller }) {
  const t = useText();
  useTaskWatch(); // it tells when names and rights change
  const [asked] = useQueryPart();
  const own = sections.filter(({ needs }) => needs.some((each) => caller.privileges.includes(each)));
  const section = own.find(({ key }) => key === asked.get("section")) ?? own[0];
  useFocusInside(`${section?.key} ${asked.get("workflow")} ${asked.get("instance")} ${asked.get("type")} ${asked.get("user")}`);
  if (!section) {
    return (
      <>
        <PageTitle tab={t("title")}>{t("title")}</PageTitle>
        <Refused />
      </>
    );
  }
  // Inside of a section one thing is looked at, whose name is the heading.
  const isInside = (section.key === "instances" && asked.has("instance")) || (section.key === "workflows" && asked.has("workflow")) || (section.key === "jobs" && asked.has("type")) || (section.key === "users" && asked.has("user"));
  return (
    <div className="ops">
      <div className="ops-side">
        <PageTitle tab={`${t(`section.${section.key}`)} – ${t("title")}`}>{t("title")}</PageTitle>
        <SectionNav own={own} selected={section.key} isWhole={!isInside} counts={caller.privileges.includes(privilege.workflows)} watches={own.some(({ key }) => key === "health")} />
      </div>
      <section className="ops-main" aria-labelledby="section-title">
        {!isInside && (
          <div className="ops-head">
            <h2 id="section-title" tabIndex={-1}>{t(`section.${section.key}`)}</h2>
            <p className="quiet">{t(`about.${section.key}`)}</p>
          </div>
        )}
        <Current section={section.key} caller={caller} isInside={isInside} user={asked.get("user") ?? ""} />
      </section>
    </div>
  );
}

/** A link that was followed may be gone with its list: then the heading of what it led to has the focus. */
function useFocusInside(place: string): void {
  const before = useRef(place);
  useEffect(() => {
    if (before.current !== place) {
      before.current = place;
      if (document.activeElement === document.body) {
        document.getElementById("section-title")?.focus();
      }
    }
  }, [place]);
}

function Current({ section, caller, isInside, user }: { section: Section; caller: Caller; isInside: boolean; user: string }) {
  switch (section) {
    case "attention":
      return <AttentionSection />;
    case "workflows":
      return <WorkflowsSection />;
    case "instances":
      return isInside ? <InspectSection /> : <InstancesSection caller={caller} />;
    case "tasks":
      return <TasksSection />;
    case "incidents":
      return <IncidentsSection />;
    case "jobs":
      return <JobsSection caller={caller} />;
    case "outbox":
      return <OutboxSection />;
    case "timers":
      return <TimersSection />;
    case "schedules":
      return <SchedulesSection />;
    case "bulk":
      return <BulkSection />;
    case "users":
      return isInside ? <UserInside id={user} /> : <UsersSection />;
    case "credentials":
      return <CredentialsSection caller={caller} />;
    case "audit":
      return <AuditSection />;
    case "backups":
      return <BackupsSection />;
    case "exports":
      return <ExportsSection />;
    case "health":
      return <HealthSection />;
  }
}

interface SectionNavProps {
  own: readonly SectionOf[];
  selected: Section;
  isWhole: boolean;
  /** Whether the person may see what waits in workflows, and how the server is. */
  counts: boolean;
  watches: boolean;
}

function SectionNav({ own, selected, isWhole, counts, watches }: SectionNavProps) {
  const t = useText();
  const incidents = useIncidents("", counts);
  const dead = useOutbox("dead", "", counts);
  const bulk = useBulk(counts);
  const parts = useHealth(watchEvery, watches).data?.parts.filter(({ ready }) => !ready).map(({ name }) => name) ?? [];
  const exports = useExports(watches);
  const failing = (...names: string[]) => parts.filter((name) => names.includes(name)).length;
  const count: Partial<Record<Section, number | undefined>> = {
    incidents: incidents.data?.incidents.length,
    outbox: dead.data?.outbox.length,
    bulk: bulk.data?.filter(({ status }) => status === "running" || status === "paused").length,
    backups: failing("backup"),
    exports: exports.data?.filter(({ error }) => error !== undefined).length,
    health: parts.length - failing("backup", "exports"),
  };
  const groups = [...new Set(own.map(({ group }) => group))];
  const nav = useRef<HTMLElement>(null);
  useEffect(() => {
    const link = nav.current?.querySelector<HTMLElement>("[aria-current]");
    if (nav.current && link) {
      nav.current.scrollLeft = link.offsetLeft - (nav.current.clientWidth - link.offsetWidth) / 2; // where it is a strip
    }
  }, [selected]);
  const shown = (of: number) => (of < pageSize ? formatNumber(of) : t("more", { count: of }));
  return (
    <nav ref={nav} className="ops-nav" aria-label={t("sections")}>
      {groups.map((group) => (
        <div key={group} className="ops-group">
          {group !== "first" && <p className="ops-group-title">{t(`groups.${group}`)}</p>}
          <ul>
            {own
              .filter((of) => of.group === group)
              .map(({ key, sign: Sign }) => (
                <li key={key}>
                  <Link to={pathOf(key)} className="ops-link" aria-current={key === selected ? (isWhole ? "page" : "true") : undefined}>
                    <Sign aria-hidden />
                    {t(`section.${key}`)}
                    {(count[key] ?? 0) > 0 && <span className={key === "bulk" ? "count" : "count count-bad"}>{shown(count[key] ?? 0)}</span>}
                  </Link>
                </li>
              ))}
          </ul>
        </div>
      ))}
    </nav>
  );
}
