package operate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"troupe/cmd/internal/cli"
	"troupe/gateway/api"
	"troupe/gateway/client"
	"troupe/statemachine/data"
)

func newInstanceList() *cobra.Command {
	var r client.ListRequest
	var filter string
	var all bool
	var columns []string
	var incidents bool
	cmd := &cobra.Command{
		Use:   "list [WORKFLOW]",
		Short: "List the instances of a workflow that you can read",
		Long:  `Prints one page, or with --all every page. With -o json and -o yaml a page is the service's answer.`,
		Example: "  troupe instance list leave-request --filter '{\"states.nodeId\": \"review\"}' --columns svcPublic.requester,svcPublic.days\n" +
			"  troupe instance list leave-request --all -o jsonl",
	}
	f := cmd.Flags()
	f.StringVar(&filter, "filter", "", "only matching instances: a JSON filter, @file, or - for standard input")
	f.IntVar(&r.Limit, "limit", 50, "instances per page, 1 to 1000 (with --all: 500); 0: all in one answer")
	f.BoolVar(&all, "all", false, "all pages")
	f.StringVar(&r.Cursor, "cursor", "", "continue where an earlier page ended")
	f.StringVar(&r.Sort, "sort", "", "order: _id or an indexed path; - in front of it: descending (default _id)")
	f.StringSliceVar(&r.Fields, "fields", nil, "also fetch svcHistory, svcRedirect, svcPrivate, title")
	f.BoolVar(&r.Count, "count", false, "count all matches")
	f.BoolVar(&r.Explain, "explain", false, "explain the query plan (needs mod-workflows)")
	f.StringSliceVar(&columns, "columns", nil, "paths to show in a table, such as svcPublic.days (default: those of the definition)")
	f.BoolVar(&incidents, "incidents", false, "list incidents of all workflows instead, as troupe incident list")
	return asking(cmd, cli.AnyForm, func(cmd *cobra.Command, c *client.Client, out *cli.Output, args []string) error {
		if incidents || len(args) == 0 {
			if !incidents {
				return cli.Usagef("WORKFLOW is missing: troupe instance list WORKFLOW")
			}
			if len(args) > 0 {
				return cli.Usagef("--incidents lists those of all workflows")
			}
			return listIncidents(cmd, c, out, &paging{limit: r.Limit, cursor: r.Cursor, all: all})
		}
		if len(columns) > 0 && out.Form != cli.FormTable {
			return cli.Usagef("--columns is for tables")
		}
		paths, err := parseColumns(columns)
		if err != nil {
			return err
		}
		text, err := cli.JsonInput(cmd, "filter", filter)
		if err != nil {
			return err
		}
		r.WorkflowID, r.Filter = args[0], string(text)
		seen, err := labelsOf(cmd.Context(), c, out, r.WorkflowID, 0)
		if err != nil {
			return err
		}
		if seen.isTitled() && !slices.Contains(r.Fields, "title") {
			r.Fields = append(r.Fields, "title")
		}
		shown := &instanceRows{labels: seen, paths: paths}
		heads := columns
		if len(columns) == 0 {
			shown.paths, heads = seen.columns()
		}
		if all && !cmd.Flags().Changed("limit") {
			r.Limit = 0 // the client's choice
		}
		l := &lister{cmd: cmd, out: out, member: "instances", things: "instances", head: shown.head(heads)}
		return list(l, all, r, c.Instances, c.InstancePages, shown.page)
	})
}

type instanceRows struct {
	labels *labels
	paths  []data.Path // of the columns
}

func (r *instanceRows) head(columns []string) []string {
	head := []string{"ID"}
	if r.labels.isTitled() {
		head = append(head, "TITLE")
	}
	return slices.Concat(head, []string{"STATES"}, columns)
}

func (r *instanceRows) page(page *client.Page[client.Instance]) *listPage {
	p := &listPage{raw: page.Raw, next: page.Next, count: page.Count, explain: page.Explain}
	for i := range page.Items {
		instance := &page.Items[i]
		row := []string{instance.ID}
		if r.labels.isTitled() {
			row = append(row, instance.Title)
		}
		states := r.labels.stateText(instance.States)
		if instance.Cancelled {
			states += "; cancelled"
		}
		row = append(row, states)
		for _, path := range r.paths {
			row = append(row, cellAt(instance.Raw, path))
		}
		p.rows, p.items = append(p.rows, row), append(p.items, instance.Raw)
	}
	return p
}

func newInstanceHistory() *cobra.Command {
	var r client.HistoryRequest
	var all bool
	cmd := &cobra.Command{
		Use:   "history WORKFLOW INSTANCE",
		Short: "Show the history of an instance",
		Long:  `A table from the oldest entry on has their numbers, which troupe instance show --at and troupe instance reset --to take.`,
		Example: "  troupe instance history leave-request 01M7YZAB2GNTJFQE62690KHSQT\n" +
			"  troupe instance history leave-request 01M7YZAB2GNTJFQE62690KHSQT --newest-first --limit 10\n" +
			"  troupe instance history leave-request 01M7YZAB2GNTJFQE62690KHSQT --all -o jsonl",
	}
	cmd.Flags().BoolVar(&r.NewestFirst, "newest-first", false, "newest entry first")
	cmd.Flags().IntVar(&r.Limit, "limit", 100, "entries per page, 1 to 1000 (with --all: 500); 0: the default")
	cmd.Flags().BoolVar(&all, "all", false, "all pages")
	cmd.Flags().StringVar(&r.Cursor, "cursor", "", "continue where an earlier page ended")
	cmd.Flags().BoolVar(&r.Data, "data", false, "include the data of the events")
	return asking(cmd, cli.AnyForm, func(cmd *cobra.Command, c *client.Client, out *cli.Output, args []string) error {
		r.WorkflowID, r.InstanceID = args[0], args[1]
		if all && !cmd.Flags().Changed("limit") {
			r.Limit = 0 // the client's choice
		}
		l := &lister{cmd: cmd, out: out, member: "history", things: "history entries", head: historyHead}
		if r.Data {
			l.head = append(slices.Clone(historyHead), "DATA")
		}
		number := uint64(1)
		if r.NewestFirst || r.Cursor != "" { // nobody knows where that begins
			number, l.head = 0, l.head[1:]
		}
		seen, err := labelsOf(cmd.Context(), c, out, r.WorkflowID, 0)
		if err != nil {
			return err
		}
		withData := r.Data
		r.Data = withData || out.Form == cli.FormTable // it says which entries are attempts
		return list(l, all, r, c.History, c.HistoryPages, func(page *client.Page[client.HistoryEntry]) *listPage {
			return historyPage(page, &number, withData, seen)
		})
	})
}

// historyPage shows entries. The first is the number-th, which it advances; 0: they have no numbers.
func historyPage(page *client.Page[client.HistoryEntry], number *uint64, withData bool, seen *labels) *listPage {
	p := &listPage{raw: page.Raw, next: page.Next}
	for i := range page.Items {
		e := &page.Items[i].HistoryEntry
		row := historyRow(*number, e, seen)
		if *number == 0 {
			row = row[1:]
		} else {
			*number++
		}
		if withData {
			row = append(row, cmp.Or(string(e.DataDigest), string(e.Data)))
		}
		p.rows = append(p.rows, row)
		p.items = append(p.items, page.Items[i].Raw)
	}
	return p
}

func newInstanceWatch() *cobra.Command {
	var r client.WatchRequest
	var filter string
	cmd := &cobra.Command{
		Use:   "watch WORKFLOW [INSTANCE]",
		Short: "Follow changes to instances until interrupted",
		Long: `Reconnects automatically. When it ends, it prints on standard error how to resume.

With -o jsonl each line is {"id": position, "event": "entry" or "lost", "data": what the service sent}; lost
means that entries are missing before it.`,
		Example: "  troupe instance watch leave-request --filter '{\"states.nodeId\": \"review\"}'\n" +
			"  troupe instance watch leave-request 01M7YZAB2GNTJFQE62690KHSQT -o jsonl",
	}
	cmd.Flags().StringVar(&filter, "filter", "", "only matching instances: a JSON filter, @file, or - for standard input")
	cmd.Flags().StringVar(&r.LastEventID, "last-event-id", "", "resume after the position that an earlier watch printed")
	return asking(cmd, []string{cli.FormLine, cli.FormJSONL}, func(cmd *cobra.Command, c *client.Client, out *cli.Output, args []string) error {
		text, err := cli.JsonInput(cmd, "filter", filter)
		if err != nil {
			return err
		}
		r.Filter, r.WorkflowID = string(text), args[0]
		if len(args) == 2 {
			r.InstanceID = args[1]
			if r.InstanceID == "" {
				return cli.Usagef("the instance id is empty")
			}
		}
		ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		return follow(ctx, cmd.ErrOrStderr(), out, c, r)
	})
}

func follow(ctx context.Context, complaints io.Writer, out *cli.Output, c *client.Client, r client.WatchRequest) error {
	place := r.LastEventID
	r.Opened = func(id string) { place = id }
	r.Broken = func(err error, wait time.Duration) {
		_, _ = fmt.Fprintf(complaints, "%s; retrying in %v\n", client.Printable(err.Error()), wait.Round(time.Millisecond))
	}
	var failed error
	var seen *labels
	asked := false
	for n, err := range c.Watch(ctx, r) {
		if err == nil && !asked {
			asked = true
			seen, _ = labelsOf(ctx, c, out, r.WorkflowID, 0) // what cannot be had now is called by its id
		}
		if err == nil && n.Entry != nil && out.Form == cli.FormLine {
			entry := []api.HistoryEntry{n.Entry.Entry}
			markAttempts(ctx, c, r.WorkflowID, n.Entry.InstanceID, entry)
			n.Entry.Entry = entry[0]
		}
		if err == nil {
			err = showNotice(out, complaints, n, seen)
		}
		if err != nil {
			failed = err
			break
		}
		place = n.ID
	}
	if place != "" {
		_, _ = fmt.Fprintf(complaints, "to resume from here: --last-event-id %s\n", client.Printable(place))
	}
	if ctx.Err() != nil && errors.Is(failed, ctx.Err()) {
		return nil
	}
	return failed
}

func showNotice(o *cli.Output, complaints io.Writer, n *client.Notice, seen *labels) error {
	if o.Form == cli.FormJSONL {
		kind := api.WatchEntry
		if n.Entry == nil {
			kind = api.WatchLost
		}
		id, err := json.Marshal(n.ID)
		if err != nil {
			return err
		}
		// NB: not by json.Marshal, which would write the data with escapes of its own.
		return o.Line([]byte(`{"id":` + string(id) + `,"event":"` + kind + `","data":` + string(n.Raw) + `}`))
	}
	if n.Entry == nil {
		_, err := fmt.Fprintln(complaints, client.Printable(n.Lost))
		return err
	}
	e := n.Entry
	_, err := fmt.Fprintf(o.To, "%s %s #%d %s by %s: %s -> %s\n", timeText(e.Entry.Time), client.Printable(e.InstanceID), e.Sequence,
		client.Printable(attemptText(seen.eventText(&e.Entry), e.Entry.Attempt)), client.Printable(e.Entry.User), client.Printable(seen.nodeText(e.Entry.StartState)),
		client.Printable(seen.nodeText(e.Entry.EndState)))
	return err
}

func newInstanceComment() *cobra.Command {
	cmd := &cobra.Command{
		Use: "comment WORKFLOW INSTANCE TEXT", Short: "Comment on an instance",
		Example: "  troupe instance comment leave-request 01M7YZAB2GNTJFQE62690KHSQT 'Please ask again in March.'",
	}
	return asking(cmd, nil, func(cmd *cobra.Command, c *client.Client, _ *cli.Output, args []string) error {
		_, err := c.Comment(cmd.Context(), args[0], args[1], args[2])
		return err
	})
}

func newInstanceActivity() *cobra.Command {
	r := client.ActivityRequest{}
	var p paging
	cmd := &cobra.Command{
		Use:   "activity WORKFLOW INSTANCE",
		Short: "Show an instance's history, comments, claims and pending work",
		Example: "  troupe instance activity leave-request 01M7YZAB2GNTJFQE62690KHSQT\n" +
			"  troupe instance activity leave-request 01M7YZAB2GNTJFQE62690KHSQT --oldest-first --all -o jsonl",
	}
	cmd.Flags().BoolVar(&r.OldestFirst, "oldest-first", false, "oldest first")
	p.add(cmd)
	return asking(cmd, cli.AnyForm, func(cmd *cobra.Command, c *client.Client, out *cli.Output, args []string) error {
		r.WorkflowID, r.InstanceID, r.Limit, r.Cursor = args[0], args[1], p.limit, p.cursor
		l := &lister{cmd: cmd, out: out, member: "activity", things: "activity", head: []string{"TIME", "USER", "WHAT", "TEXT"}}
		_, seen := seenInstance(cmd.Context(), c, out, r.WorkflowID, r.InstanceID)
		return list(l, p.all, r, c.Activity, c.ActivityPages, func(page *client.Page[api.Activity]) *listPage {
			return pageOf(page.Raw, page.Next, page.Items, func(a *api.Activity) []string {
				what, text := activityText(a, seen)
				return []string{a.TS, shownText(a.UserName), what, text}
			})
		})
	})
}

func activityText(a *api.Activity, seen *labels) (what, text string) {
	switch a.Kind {
	case "comment":
		return "comment", a.Text
	case "task":
		return a.Action + " " + seen.nodeText([]string{a.NodeID}), shownText(a.ToName)
	case "timer":
		return "timer", seen.timerText(a.Timer)
	case "delivery":
		return a.Delivery.Kind, a.Delivery.Name + " " + a.Delivery.State
	}
	event := shownText(a.TransitionEvent)
	if event != "" {
		event = seen.event(event)
	}
	if a.Attempt {
		return "attempt", event + " (nothing changed)"
	}
	return "event", strings.TrimSpace(event + " (" + seen.nodeText(a.StartState) + " → " + seen.nodeText(a.EndState) + ")")
}
