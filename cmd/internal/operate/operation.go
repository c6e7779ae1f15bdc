package operate

import (
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
	return cli.Group("outbox", "List what instances have sent out that has not arrived, and retry or drop it",
		"  troupe outbox list --state dead\n"+
			"  troupe outbox retry 01M7YZAB2GNTJFQE62690KHSQT-3-0",
		newOutboxList(),
		newOperation("retry", "Try deliveries now",
			"Try deliveries now. A dead one gets all its attempts again, and may arrive behind\nothers that its instance has sent since.", "outbox", (*client.Client).ChangeDelivery),
		newOperation("drop", "Remove deliveries",
			"Remove deliveries. One that is still tried tells its instance as when it dies, and\nfrees what waits behind it.", "outbox", (*client.Client).ChangeDelivery))
}

func newIncident() *cobra.Command {
	return cli.Group("incident", "List what failed, and retry or drop it",
		"  troupe incident list\n"+
			"  troupe incident retry 01M7YZAB2GNTJFQE62690KHSQT-3-0",
		newIncidentList(),
		newOperation("retry", "Give instances the events once more, as of now",
			"Give instances the events once more, as of now. Only an event that came by itself can be retried: whoever sent\nanother one was told that it failed.", "incident", (*client.Client).ChangeIncident),
		newOperation("drop", "Remove incidents", "", "incident", (*client.Client).ChangeIncident))
}

func newTimer() *cobra.Command {
	return cli.Group("timer", "List the timers of instances that are running",
		"  troupe timer list --workflow leave-request",
		newTimerList())
}

func newSchedule() *cobra.Command {
	return cli.Group("schedule", "List the schedules of workflows, and pause, resume or run them",
		"  troupe schedule list\n"+
			"  troupe schedule pause stock-take/monthly",
		newScheduleList(),
		newScheduleChange(client.Pause, "End the runs of schedules until they are resumed"),
		newScheduleChange(client.Resume, "Have schedules run again"),
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
		return out.Table(rows)
	})
}

func newScheduleChange(action, short string) *cobra.Command {
	cmd := &cobra.Command{
		Use: action + " [WORKFLOW/NAME...]", Short: short + " (needs mod-workflows)",
		Example: "  troupe schedule " + action + " stock-take/monthly",
	}
	all := false
	if action == client.Resume {
		cmd.Flags().BoolVar(&all, "all", false, "all that are paused")
	}
	return operating(cmd, nil, func(cmd *cobra.Command, c *client.Client, _ *cli.Output, args []string) error {
		if all == (len(args) > 0) {
			return cli.Usage(errors.New("WORKFLOW/NAME is missing: troupe schedule " + action + " WORKFLOW/NAME"))
		}
		if all {
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
		Short: "List what has not been delivered (needs mod-workflows)",
		Example: "  troupe outbox list --state dead\n" +
			"  troupe outbox list --all -o jsonl",
	}
	cmd.Flags().StringVar(&state, "state", "", "pending: still tried; dead: given up")
	cli.OneOf(cmd, "state", "pending", "dead")
	p.add(cmd)
	return operating(cmd, cli.AnyForm, func(cmd *cobra.Command, c *client.Client, out *cli.Output, _ []string) error {
		r := client.OutboxRequest{State: state, Limit: p.limit, Cursor: p.cursor}
		l := &lister{cmd: cmd, out: out, member: "outbox", head: []string{"ID", "WORKFLOW", "KIND", "NAME", "STATE", "ATTEMPTS", "NEXT", "STATUS", "ERROR"}}
		return list(l, p.all, r, c.Outbox, c.OutboxPages, func(page *client.OutboxPage) *listPage {
			return pageOf(page.Raw, page.Next, page.Outbox, func(d *api.Delivery) []string {
				return []string{d.ID, d.WorkflowID, d.Kind, d.Name, d.State, strconv.Itoa(int(d.Attempts)), shownText(d.NextAttempt), statusText(d.LastStatus), d.LastError}
			})
		})
	})
}

func newIncidentList() *cobra.Command {
	var p paging
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List what failed: timers and callbacks, and expressions (needs mod-workflows)",
		Long:    "List what failed: timers and callbacks, each of which can be retried, and expressions that failed for whoever sent an event, one\nincident for each place of a version. The message that those people got has the first part of the incident's id. Where it failed, with\nwhat values and how often: -o json.",
		Example: "  troupe incident list --all -o jsonl",
	}
	p.add(cmd)
	return operating(cmd, cli.AnyForm, func(cmd *cobra.Command, c *client.Client, out *cli.Output, _ []string) error {
		return listIncidents(cmd, c, out, &p)
	})
}

func listIncidents(cmd *cobra.Command, c *client.Client, out *cli.Output, p *paging) error {
	r := client.IncidentsRequest{Limit: p.limit, Cursor: p.cursor}
	l := &lister{cmd: cmd, out: out, member: "incidents", head: []string{"ID", "WORKFLOW", "INSTANCE", "EVENT", "TIME", "COUNT", "ERROR"}}
	seen := &labelBook{cmd.Context(), c, out, map[string]*labels{}}
	return list(l, p.all, r, c.Incidents, c.IncidentsPages, func(page *client.IncidentsPage) *listPage {
		return pageOf(page.Raw, page.Next, page.Incidents, func(in *api.Incident) []string {
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
		Short:   "List running timers, those that are due next first (needs mod-workflows)",
		Example: "  troupe timer list --workflow leave-request --all -o jsonl",
	}
	p.add(cmd)
	cmd.Flags().StringVar(&workflow, "workflow", "", "only those of instances of the workflow `ID`")
	return operating(cmd, cli.AnyForm, func(cmd *cobra.Command, c *client.Client, out *cli.Output, _ []string) error {
		r := client.TimersRequest{WorkflowID: workflow, Limit: p.limit, Cursor: p.cursor}
		l := &lister{cmd: cmd, out: out, member: "timers", head: []string{"ID", "WORKFLOW", "INSTANCE", "TIMER", "DUE"}}
		seen := &labelBook{cmd.Context(), c, out, map[string]*labels{}}
		return list(l, p.all, r, c.Timers, c.TimersPages, func(page *client.TimersPage) *listPage {
			return pageOf(page.Raw, page.Next, page.Timers, func(t *api.RunningTimer) []string {
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
		Short:   "Show what an instance waits for: its timers, what it has sent out, and its children; or how it has ended",
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
		return out.Table(slices.Concat(rows, timerRows(p.Timers, seen), deliveryRows(p.Deliveries), childRows(p.Children)))
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
