package operate

import (
	"context"
	"encoding/json"
	"fmt"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"troupe/cmd/internal/cli"
	"troupe/gateway/api"
	"troupe/gateway/client"
	"troupe/statemachine/data"
)

func newInstanceShow() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show WORKFLOW INSTANCE",
		Short: "Show an instance with its data and history",
		Example: "  troupe instance show leave-request 01M7YZAB2GNTJFQE62690KHSQT\n" +
			"  troupe instance show leave-request 01M7YZAB2GNTJFQE62690KHSQT -o yaml\n" +
			"  troupe instance show leave-request 01M7YZAB2GNTJFQE62690KHSQT --at 2",
	}
	at := uint64(0)
	cmd.Flags().Var(cli.Sequence(&at), "at", "as it was after this entry of its history, counted from 1")
	return asking(cmd, cli.AnyForm, func(cmd *cobra.Command, c *client.Client, out *cli.Output, args []string) error {
		i, err := c.Instance(cmd.Context(), client.InstanceRequest{WorkflowID: args[0], InstanceID: args[1], At: at})
		if err != nil {
			return err
		}
		if at > 0 { // what waits now did not wait then
			return showAs(out, i, nil, nil)
		}
		if out.Form == cli.FormTable {
			markAttempts(cmd.Context(), c, i.WorkflowID, i.ID, i.History)
		}
		more, seen := seenInstance(cmd.Context(), c, out, args[0], args[1])
		return showAs(out, i, more, seen)
	})
}

// markAttempts marks the entries of a history of which a record does not say whether anything took their event.
func markAttempts(ctx context.Context, c *client.Client, workflowID, instanceID string, history []api.HistoryEntry) {
	isOpen := func(e *api.HistoryEntry) bool {
		return e.TransitionEvent != "" && slices.Equal(e.StartState, e.EndState)
	}
	open := 0
	for n := range history {
		if isOpen(&history[n]) {
			open++
		}
	}
	if open == 0 {
		return
	}
	n := len(history) - 1
	for page, err := range c.HistoryPages(ctx, client.HistoryRequest{WorkflowID: workflowID, InstanceID: instanceID, NewestFirst: true, Data: true}) {
		if err != nil {
			return
		}
		for k := range page.Items {
			if n < 0 || open == 0 {
				return
			}
			shown, e := &history[n], &page.Items[k].HistoryEntry
			if e.Time.Before(shown.Time) {
				return // times never go back in a history: it is not there
			}
			if !shown.Time.Equal(e.Time) || shown.User != e.User || shown.TransitionEvent != e.TransitionEvent || !slices.Equal(shown.StartState, e.StartState) {
				continue // it came later
			}
			if isOpen(shown) {
				open--
			}
			shown.Attempt = e.Attempt
			n--
		}
	}
}

// seenInstance asks for what a table shows beside the record: title, how it ended, labels. Without an answer they are
// empty.
func seenInstance(ctx context.Context, c *client.Client, out *cli.Output, workflowID, instanceID string) (more [][]string, seen *labels) {
	if out.Form != cli.FormTable {
		return nil, nil
	}
	summary, err := c.Summary(ctx, workflowID, instanceID)
	if err != nil {
		return nil, nil
	}
	if seen, _ = labelsOf(ctx, c, out, workflowID, summary.Version); seen.isTitled() {
		more = append(more, []string{"TITLE", summary.Title})
	}
	if summary.Ended != nil {
		more = append(more, []string{"ENDED", *summary.Ended})
	}
	return more, seen
}

func newInstanceEvents() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "events WORKFLOW INSTANCE",
		Short:   "List the events that you can send to an instance",
		Long:    `Prints one line per transition. A guard is unknown if it depends on the event's data.`,
		Example: "  troupe instance events leave-request 01M7YZAB2GNTJFQE62690KHSQT",
	}
	return asking(cmd, cli.AnyForm, func(cmd *cobra.Command, c *client.Client, out *cli.Output, args []string) error {
		e, err := c.Events(cmd.Context(), args[0], args[1])
		if err != nil {
			return err
		}
		if out.Form != cli.FormTable {
			return out.Document(e.Raw)
		}
		rows := [][]string{{"EVENT", "GUARD", "MACHINE", "FROM", "TO"}}
		_, seen := seenInstance(cmd.Context(), c, out, args[0], args[1])
		isLabelled := slices.ContainsFunc(e.Events, func(e api.Event) bool { return e.Label != "" && e.Label != e.Name })
		if isLabelled {
			rows[0] = append(rows[0], "LABEL")
		}
		for i := range e.Events {
			for _, row := range eventRows(&e.Events[i], seen) {
				if isLabelled {
					row = append(row, e.Events[i].Label)
				}
				rows = append(rows, row)
			}
		}
		return out.Table(rows)
	})
}

func eventRows(e *api.Event, seen *labels) (rows [][]string) {
	for _, t := range e.Transitions {
		from := seen.nodeIn(api.Position{StateMachineID: t.StateMachineID, NodeID: t.NodeID})
		rows = append(rows, []string{e.Name, string(t.Guard), t.StateMachineID, from, strings.Join(t.TargetLabels, ", ")})
	}
	if len(rows) == 0 {
		rows = append(rows, []string{e.Name, string(e.Guard), "", "", ""})
	}
	return rows
}

func timeText(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

var recordMembers = []string{"_id", "workflowId", "svcPublic", "svcPrivate", "svcHistory", "states", "svcRedirect", "cancelled"}

func parseColumns(columns []string) ([]data.Path, error) {
	paths := make([]data.Path, len(columns))
	for i, column := range columns {
		path, err := data.ParsePath(column)
		if err != nil {
			return nil, cli.Usagef("--columns %q: %w", column, err)
		}
		if !slices.Contains(recordMembers, path[0]) {
			return nil, cli.Usagef("--columns %q: a path begins with %s", column, strings.Join(recordMembers, ", "))
		}
		paths[i] = path
	}
	return paths, nil
}

// cellAt is what stands at a path: strings without quotes, other values as JSON, nothing where there is nothing.
func cellAt(record json.RawMessage, path data.Path) string {
	value, err := data.Clean(record)
	if err != nil {
		return "?" // valid JSON, but not as strict as ours is
	}
	for _, segment := range path {
		if value.Kind() == data.Array {
			position, ok := data.ParsePosition(segment)
			if !ok {
				return ""
			}
			value, _ = value.Index(position)
			continue
		}
		value, _ = value.Lookup(segment)
	}
	if value.Kind() == data.String {
		return value.Text()
	}
	if value.Kind() == data.Absent {
		return ""
	}
	return value.String()
}

// The labels are waited for as long as the look before it.
func showChanged(ctx context.Context, c *client.Client, o *cli.Output, i *client.Instance) error {
	ctx, cancel := context.WithTimeout(ctx, lookMax)
	defer cancel()
	_, seen := seenInstance(ctx, c, o, i.WorkflowID, i.ID)
	return showAs(o, i, nil, seen)
}

func showAs(o *cli.Output, i *client.Instance, more [][]string, l *labels) error {
	if o.Form != cli.FormTable {
		return o.Document(i.Raw)
	}
	rows := append([][]string{{"ID", i.ID}, {"WORKFLOW", i.WorkflowID}, {"STATES", l.idText(i.States)}}, more...)
	if i.Sequence != 0 {
		rows = append(rows, []string{"SEQUENCE", strconv.FormatUint(i.Sequence, 10)})
	}
	if i.Key != "" {
		rows = append(rows, []string{"KEY", i.Key})
	}
	if i.Redirect != "" {
		rows = append(rows, []string{"REDIRECT", i.Redirect})
	}
	rows = append(rows, []string{"PUBLIC", string(i.Public)})
	if len(i.Private) > 0 {
		rows = append(rows, []string{"PRIVATE", string(i.Private)})
	}
	if err := o.Table(rows); err != nil || len(i.History) == 0 {
		return err
	}
	if _, err := fmt.Fprintln(o.To); err != nil {
		return err
	}
	if i.HistoryFrom > 1 {
		if _, err := fmt.Fprintf(o.To, "entries 1 to %d: troupe instance history %s %s\n", i.HistoryFrom-1, i.WorkflowID, i.ID); err != nil {
			return err
		}
	}
	rows = [][]string{historyHead}
	for n := range i.History {
		rows = append(rows, historyRow(max(i.HistoryFrom, 1)+uint64(n), &i.History[n], l))
	}
	return o.Table(rows)
}

func attemptText(event string, attempt bool) string {
	if attempt {
		return event + " (tried; nothing changed)"
	}
	return event
}

var historyHead = []string{"ENTRY", "TIME", "USER", "EVENT", "FROM", "TO"}

func historyRow(number uint64, e *api.HistoryEntry, l *labels) []string {
	return []string{strconv.FormatUint(number, 10), timeText(e.Time), e.User, attemptText(l.eventText(e), e.Attempt), l.nodeText(e.StartState), l.nodeText(e.EndState)}
}

func newInstanceCreate() *cobra.Command {
	var public, private, key string
	cmd := &cobra.Command{
		Use:   "create WORKFLOW",
		Short: "Create an instance",
		Long: `Requests can be repeated safely: an idempotency key ensures that only one instance is created. Choose it with --key
to repeat the command itself.`,
		Example: "  troupe instance create leave-request --public '{\"from\": \"2026-12-21\"}'\n" +
			"  troupe instance create leave-request --public @leave.json --key leave-2026-12 -o json",
	}
	cmd.Flags().StringVar(&public, "public", "", "svcPublic: a JSON object, @file, or - for standard input")
	cmd.Flags().StringVar(&private, "private", "", "svcPrivate: a JSON object, @file, or - for standard input")
	cmd.Flags().StringVar(&key, "key", "", "idempotency key (default: generated)")
	return asking(cmd, cli.AnyForm, func(cmd *cobra.Command, c *client.Client, out *cli.Output, args []string) error {
		// A table shows no history of what is new.
		r := client.CreateRequest{WorkflowID: args[0], Key: key, Minimal: out.Form == cli.FormTable}
		var err error
		if public == "-" && private == "-" {
			return cli.Usagef("standard input can be read only once")
		}
		r.Public, err = cli.JsonInput(cmd, "public", public)
		if err == nil {
			r.Private, err = cli.JsonInput(cmd, "private", private)
		}
		if err != nil {
			return err
		}
		i, err := c.Create(cmd.Context(), r)
		if err != nil {
			return err
		}
		return showChanged(cmd.Context(), c, out, i)
	})
}

func newInstanceSend() *cobra.Command {
	var eventData, key, file string
	var ifMatch uint64
	var to byKey
	cmd := &cobra.Command{
		Use:   "send WORKFLOW INSTANCE EVENT",
		Short: "Send an event to an instance, or many from a file",
		Long: `Requests can be repeated safely: an idempotency key ensures that an event is applied once. Choose it with --key to
repeat the command itself.

With --by-key, in place of INSTANCE, the event goes to the instance that has this business key and has not ended.
With --create-public or --create-private too, it creates the instance if there is none.

With --file each item is {"workflowId", "instanceId", "event": {"name", "data", "id"}}, or {"workflowId", "data"} to
create an instance. Refused items are listed, and the exit code is then 1. To continue after an interruption, send
the same file with the same --key: nothing is done twice. Without --key, one is generated and shown when needed.`,
		Example: "  troupe instance send leave-request 01M7YZAB2GNTJFQE62690KHSQT submit --data '{\"days\": 5}'\n" +
			"  troupe instance send leave-request 01M7YZAB2GNTJFQE62690KHSQT approve --if-match 2\n" +
			"  troupe instance send order --by-key order-4711 add --create-public '{\"orderNumber\": \"order-4711\"}'\n" +
			"  troupe instance send --file events.ndjson --key import-2026-12",
		Args: func(cmd *cobra.Command, args []string) error {
			if file != "" && (len(args) > 0 || cmd.Flags().Changed("data") || cmd.Flags().Changed("if-match") || to.isGiven(cmd)) {
				return cli.Usagef("--file cannot be combined with arguments, --data, --if-match or --by-key")
			}
			if file != "" {
				return nil
			}
			if !to.isGiven(cmd) {
				return cli.Arguments(cmd, args)
			}
			return to.check(cmd, args)
		},
	}
	to.add(cmd)
	cmd.Flags().StringVar(&file, "file", "", "file of items, one JSON object per line or an array; - for standard input")
	cmd.Flags().StringVar(&eventData, "data", "", "event.data: a JSON object, @file, or - for standard input")
	cmd.Flags().StringVar(&key, "key", "", "idempotency key (default: generated)")
	cmd.Flags().Var(cli.Sequence(&ifMatch), "if-match", "refuse the event unless the instance has this sequence number")
	return asking(cmd, cli.AnyForm, func(cmd *cobra.Command, c *client.Client, out *cli.Output, args []string) error {
		if file != "" {
			if key == "" {
				key = client.NewKey()
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), cli.EndSignals()...)
			defer stop()
			context.AfterFunc(ctx, stop) // the second one ends it at once
			cmd.SetContext(ctx)
			s := &sendFile{cmd: cmd, client: c, key: key, live: cli.NewLiveLine(cmd.ErrOrStderr()), began: time.Now(), Created: []createdItem{}, Failures: []failedItem{}}
			return s.run(file, out)
		}
		r := client.SendRequest{WorkflowID: args[0], Event: args[len(args)-1], IfMatch: ifMatch, Key: key, Minimal: out.Form == cli.FormTable} // which shows no history
		var err error
		if !to.isGiven(cmd) {
			r.InstanceID = args[1]
		} else if err = to.name(cmd, &r, eventData); err != nil {
			return err
		}
		if r.Data, err = cli.JsonInput(cmd, "data", eventData); err != nil {
			return err
		}
		var before *client.Instance
		if r.Minimal && r.InstanceID != "" {
			before = lookBefore(cmd.Context(), c, &r)
		}
		i, err := c.Send(cmd.Context(), r)
		if err != nil {
			return err
		}
		if i.Created {
			_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "%s was created\n", client.Printable(i.ID))
		}
		if stayed(&r, before, i) {
			_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "%s changed no state; troupe instance events %s %s lists the events that would\n",
				client.Printable(r.Event), client.Printable(i.WorkflowID), client.Printable(i.ID))
		}
		return showChanged(cmd.Context(), c, out, i)
	})
}

const lookMax = 2 * time.Second

// lookBefore returns the instance without its history as it is before the event, for stayed alone; nil when that cannot
// be had.
func lookBefore(ctx context.Context, c *client.Client, r *client.SendRequest) *client.Instance {
	ctx, cancel := context.WithTimeout(ctx, lookMax)
	defer cancel()
	before, err := c.Instance(ctx, client.InstanceRequest{WorkflowID: r.WorkflowID, InstanceID: r.InstanceID, Minimal: true})
	if err != nil {
		return nil
	}
	return before
}

// stayed reports whether the event left all machines in the states where they were. It knows from the history, where
// after has one: an ignored event leaves no entry. Otherwise it knows from a look before, and says false without one.
func stayed(r *client.SendRequest, before, after *client.Instance) bool {
	if len(after.History) > 0 {
		last := after.History[len(after.History)-1]
		return last.TransitionEvent != r.Event || slices.Equal(last.StartState, last.EndState)
	}
	if before == nil || before.Sequence == 0 {
		return false
	}
	if after.Sequence == before.Sequence { // it was ignored, or is a repetition
		return r.Key == ""
	}
	return after.Sequence == before.Sequence+1 && slices.Equal(after.States, before.States)
}
