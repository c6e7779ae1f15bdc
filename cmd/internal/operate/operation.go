package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"troupe/cmd/internal/cli"
	"troupe/gateway/api"
	"troupe/gateway/client"
)

func newOutbox() *cobra.Command {
	return cli.Group("outbox", "List, retry or drop undelivered messages",
		"  troupe outbox list --state dead\n"+
			"  troupe outbox retry 01M7YZAB2GNTJFQE62690KHSQT-3-0",
		newOutboxList(),
		newOperation("retry", "Retry deliveries now",
			"A dead delivery gets all its attempts again. It may arrive after later deliveries of its instance.", "outbox", (*client.Client).ChangeDelivery),
		newOperation("drop", "Remove deliveries",
			"A pending delivery counts as failed for its instance, and the next delivery is sent.", "outbox", (*client.Client).ChangeDelivery),
		newOutboxResume())
}

func newOutboxResume() *cobra.Command {
	cmd := &cobra.Command{
		Use: "resume", Short: "Send webhooks and mails after a restore (needs mod-workflows)",
		Long: `A store that was restored from a backup sends nothing until then, so that a copy of a store does not send what the
original sends. Drop what must not be sent again first.`,
		Example: "  troupe outbox resume --home ./troupe-home",
	}
	return operating(cmd, nil, func(cmd *cobra.Command, c *client.Client, _ *cli.Output, _ []string) error {
		return c.ResumeOutbox(cmd.Context())
	})
}

func newIncident() *cobra.Command {
	return cli.Group("incident", "List, retry or drop failed timers, callbacks and expressions",
		"  troupe incident list\n"+
			"  troupe incident retry 01M7YZAB2GNTJFQE62690KHSQT-3-0",
		newIncidentList(),
		newOperation("retry", "Deliver failed events again, as of now",
			"Only timers and callbacks can be retried. For other events, the sender was told of the failure.", "incident", (*client.Client).ChangeIncident),
		newOperation("drop", "Remove incidents", "", "incident", (*client.Client).ChangeIncident))
}

func newTimer() *cobra.Command {
	return cli.Group("timer", "List the timers of running instances",
		"  troupe timer list --workflow leave-request",
		newTimerList())
}

func newSchedule() *cobra.Command {
	return cli.Group("schedule", "List, pause, resume or run schedules",
		"  troupe schedule list\n"+
			"  troupe schedule pause stock-take/monthly",
		newScheduleList(),
		newScheduleChange(client.Pause, "Pause schedules"),
		newScheduleChange(client.Resume, "Resume paused schedules"),
		newScheduleChange(client.Run, "Create an instance now"))
}

func newScheduleList() *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Short: "List the schedules of all workflows (needs mod-workflows)",
		Example: "  troupe schedule list -o json",
	}
	return operating(cmd, cli.AnyForm, func(cmd *cobra.Command, c *client.Client, out *cli.Output, _ []string) error {
		list, err := c.Schedules(cmd.Context())
		if err != nil {
			return err
		}
		if out.Form != cli.FormTable {
			return out.Document(list.Raw)
		}
		rows := [][]string{{"SCHEDULE", "CRON", "ZONE", "PAUSED", "LAST", "NEXT", "ERROR"}}
		for _, s := range list.Schedules {
			rows = append(rows, []string{s.WorkflowID + "/" + s.Name, s.Cron, s.Zone, strconv.FormatBool(s.Paused), shownText(s.Last), shownText(s.Next), s.LastError})
		}
		return out.Listing(cmd.ErrOrStderr(), "schedules", rows)
	})
}

func newScheduleChange(action, short string) *cobra.Command {
	cmd := &cobra.Command{
		Use: action + " [WORKFLOW/NAME...]", Short: short + " (needs mod-workflows)",
		Example: "  troupe schedule " + action + " stock-take/monthly",
	}
	all := false
	if action == client.Resume {
		cmd.Flags().BoolVar(&all, "all", false, "all paused schedules, and those of a restored store")
	}
	return operating(cmd, nil, func(cmd *cobra.Command, c *client.Client, _ *cli.Output, args []string) error {
		if all == (len(args) > 0) {
			return cli.Usage(errors.New("WORKFLOW/NAME is missing: troupe schedule " + action + " WORKFLOW/NAME"))
		}
		if all {
			if err := c.ResumeSchedules(cmd.Context()); err != nil {
				return err
			}
			list, err := c.Schedules(cmd.Context())
			if err != nil {
				return err
			}
			for _, s := range list.Schedules {
				if s.Paused {
					args = append(args, s.WorkflowID+"/"+s.Name)
				}
			}
		}
		var faults []error
		for _, arg := range args {
			workflow, name, found := strings.Cut(arg, "/")
			if !found {
				return cli.Usagef("%q: a schedule is WORKFLOW/NAME", arg)
			}
			faults = append(faults, c.ChangeSchedule(cmd.Context(), workflow, name, action))
		}
		return errors.Join(faults...)
	})
}

func newOutboxList() *cobra.Command {
	var state string
	var p paging
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List undelivered messages (needs mod-workflows)",
		Example: "  troupe outbox list --state dead\n" +
			"  troupe outbox list --all -o jsonl",
	}
	cmd.Flags().StringVar(&state, "state", "", "pending: being retried; dead: failed")
	cli.OneOf(cmd, "state", "pending", "dead")
	p.add(cmd)
	return operating(cmd, cli.AnyForm, func(cmd *cobra.Command, c *client.Client, out *cli.Output, _ []string) error {
		r := client.OutboxRequest{State: state, Limit: p.limit, Cursor: p.cursor}
		l := &lister{cmd: cmd, out: out, member: "outbox", things: "undelivered messages", head: []string{"ID", "WORKFLOW", "KIND", "NAME", "STATE", "ATTEMPTS", "NEXT", "STATUS", "ERROR"}}
		return list(l, p.all, r, c.Outbox, c.OutboxPages, func(page *client.Page[api.Delivery]) *listPage {
			return pageOf(page.Raw, page.Next, page.Items, func(d *api.Delivery) []string {
				return []string{d.ID, d.WorkflowID, d.Kind, d.Name, d.State, strconv.Itoa(int(d.Attempts)), shownText(d.NextAttempt), statusText(d.LastStatus), d.LastError}
			})
		})
	})
}

func newIncidentList() *cobra.Command {
	var p paging
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List failed timers, callbacks and expressions (needs mod-workflows)",
		Long: `Timers and callbacks can be retried. Expressions that failed for the sender of an event are grouped: one incident for
each place in a version. The sender's error message contains the first part of the incident's id. Use -o json to see
where the expression failed, with which values and how often.`,
		Example: "  troupe incident list --all -o jsonl",
	}
	p.add(cmd)
	return operating(cmd, cli.AnyForm, func(cmd *cobra.Command, c *client.Client, out *cli.Output, _ []string) error {
		return listIncidents(cmd, c, out, &p)
	})
}

func listIncidents(cmd *cobra.Command, c *client.Client, out *cli.Output, p *paging) error {
	r := client.IncidentsRequest{Limit: p.limit, Cursor: p.cursor}
	l := &lister{cmd: cmd, out: out, member: "incidents", things: "incidents", head: []string{"ID", "WORKFLOW", "INSTANCE", "EVENT", "TIME", "COUNT", "ERROR"}}
	seen := &labelBook{cmd.Context(), c, out, map[string]*labels{}}
	return list(l, p.all, r, c.Incidents, c.IncidentsPages, func(page *client.Page[api.Incident]) *listPage {
		return pageOf(page.Raw, page.Next, page.Items, func(in *api.Incident) []string {
			return []string{in.ID, in.WorkflowID, in.InstanceID, seen.of(in.WorkflowID).event(in.Event), in.TS, strconv.FormatUint(max(in.Count, 1), 10), placedError(in)}
		})
	})
}

func placedError(in *api.Incident) string {
	if in.Line == 0 {
		return in.Error
	}
	return fmt.Sprintf("%s:%d: %s", in.File, in.Line, in.Error)
}

func newTimerList() *cobra.Command {
	var p paging
	var workflow string
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List running timers, soonest first (needs mod-workflows)",
		Example: "  troupe timer list --workflow leave-request --all -o jsonl",
	}
	p.add(cmd)
	cmd.Flags().StringVar(&workflow, "workflow", "", "only those of instances of the workflow `ID`")
	return operating(cmd, cli.AnyForm, func(cmd *cobra.Command, c *client.Client, out *cli.Output, _ []string) error {
		r := client.TimersRequest{WorkflowID: workflow, Limit: p.limit, Cursor: p.cursor}
		l := &lister{cmd: cmd, out: out, member: "timers", things: "timers", head: []string{"ID", "WORKFLOW", "INSTANCE", "TIMER", "DUE"}}
		seen := &labelBook{cmd.Context(), c, out, map[string]*labels{}}
		return list(l, p.all, r, c.Timers, c.TimersPages, func(page *client.Page[api.RunningTimer]) *listPage {
			return pageOf(page.Raw, page.Next, page.Items, func(t *api.RunningTimer) []string {
				return []string{t.ID, t.WorkflowID, t.InstanceID, seen.of(t.WorkflowID).timerText(&t.Timer), t.Due}
			})
		})
	})
}

func statusText(status uint32) string {
	if status == 0 {
		return ""
	}
	return strconv.Itoa(int(status))
}

func newOperation(action, short, long, of string, do func(c *client.Client, ctx context.Context, id, action string) error) *cobra.Command {
	cmd := &cobra.Command{
		Use: action + " ID...", Short: short + " (needs mod-workflows)", Long: long,
		Example: "  troupe " + of + " " + action + " 01M7YZAB2GNTJFQE62690KHSQT-3-0",
	}
	return operating(cmd, nil, func(cmd *cobra.Command, c *client.Client, _ *cli.Output, args []string) error {
		return each(args, func(id string) error { return do(c, cmd.Context(), id, action) })
	})
}

func newInstancePending() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "pending WORKFLOW INSTANCE",
		Short:   "Show an instance's timers, jobs, deliveries and children, or how it ended",
		Example: "  troupe instance pending leave-request 01M7YZAB2GNTJFQE62690KHSQT",
	}
	return asking(cmd, cli.AnyForm, func(cmd *cobra.Command, c *client.Client, out *cli.Output, args []string) error {
		p, err := c.Pending(cmd.Context(), args[0], args[1])
		if err != nil {
			return err
		}
		if out.Form != cli.FormTable {
			return out.Document(p.Raw)
		}
		seen, err := labelsOf(cmd.Context(), c, out, args[0], p.Version)
		if err != nil {
			return err
		}
		rows := [][]string{{"ID", "WHAT", "NAME", "STATE", "ATTEMPTS", "WHEN"}}
		if p.Ended != nil {
			rows = append(rows, []string{args[1], "instance", args[0], *p.Ended, "", ""})
		}
		return out.Table(slices.Concat(rows, timerRows(p.Timers, seen), jobRows(p.Jobs), deliveryRows(p.Deliveries), childRows(p.Children)))
	})
}

func timerRows(timers []api.Timer, seen *labels) (rows [][]string) {
	for i := range timers {
		t := &timers[i]
		state := "pending"
		if t.Incident {
			state = "incident"
		}
		rows = append(rows, []string{t.ID, "timer", seen.timerText(t), state, "", t.Due})
	}
	return rows
}

func jobRows(jobs []api.ListedJob) (rows [][]string) {
	for i := range jobs {
		j := &jobs[i]
		rows = append(rows, []string{j.JobID, "job", j.Type, j.State, strconv.Itoa(j.Attempts), shownText(cmp.Or(j.Deadline, j.Due))})
	}
	return rows
}

func childRows(children []api.Child) (rows [][]string) {
	for _, c := range children {
		rows = append(rows, []string{c.InstanceID, "child", c.WorkflowID, c.Status, "", ""})
	}
	return rows
}

func deliveryRows(deliveries []api.PendingDelivery) (rows [][]string) {
	for _, d := range deliveries {
		rows = append(rows, []string{d.ID, d.Kind, d.Name, d.State, strconv.FormatUint(uint64(d.Attempts), 10), shownText(d.NextAttempt)})
	}
	return rows
}
