package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"troupe/gateway/api"
	"troupe/gateway/client"
	"troupe/statemachine/data"
)

func newInstance() *cobra.Command {
	return group("instance", "List, show, create, move and watch instances of a running service",
		"  troupe instance create leave-request --public '{\"from\": \"2026-12-21\"}'\n"+
			"  troupe instance list leave-request --filter '{\"states.nodeId\": \"review\"}'",
		newInstanceList(), newInstanceShow(), newInstanceCreate(), newInstanceSend(),
		newInstanceHistory(), newInstanceActivity(), newInstanceComment(), newInstancePending(), newInstanceWatch(), newInstanceEvents(), newInstanceMigrate(), newInstanceStop())
}

// anyForm are the forms of most results.
var anyForm = []string{formTable, formJSON, formJSONL, formYAML}

// asking makes cmd a command that asks the service: it gets the flags for the
// connection and for the form of the output, connects, and explains errors.
func asking(cmd *cobra.Command, forms []string, do doing) *cobra.Command {
	return askingAt(cmd, addConnection(cmd), forms, do)
}

// doing is what a command does with the service.
type doing = func(cmd *cobra.Command, c *client.Client, out *output, args []string) error

// operating is asking for a command of those who run the service, who may ask it over the socket in its home.
func operating(cmd *cobra.Command, forms []string, do doing) *cobra.Command {
	at := addConnection(cmd)
	at.addHome(cmd)
	return askingAt(cmd, at, forms, do)
}

func askingAt(cmd *cobra.Command, at *connection, forms []string, do doing) *cobra.Command {
	out := &output{forms: []string{""}}
	if len(forms) > 0 {
		out = addOutput(cmd, forms...)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := out.open(cmd); err != nil {
			return err
		}
		c, err := at.client(repetitions(cmd))
		if err != nil {
			return err
		}
		defer c.Close()
		return explained(hinted(cmd, c, args, do(cmd, c, out, args)))
	}
	completing(cmd, at)
	return cmd
}

// repetitions is client.Options.RetryMax for a command. Who sends a file waits until
// --timeout rather than begin again.
func repetitions(cmd *cobra.Command) int {
	if cmd.Flags().Changed("file") {
		return math.MaxInt32
	}
	return 0
}

func timeText(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// recordMembers are what the path of a column begins with.
var recordMembers = []string{"_id", "workflowId", "svcPublic", "svcPrivate", "svcHistory", "states", "svcRedirect", "cancelled"}

// parseColumns checks the paths of --columns.
func parseColumns(columns []string) ([]data.Path, error) {
	paths := make([]data.Path, len(columns))
	for i, column := range columns {
		path, err := data.ParsePath(column)
		if err != nil {
			return nil, usageError{fmt.Errorf("--columns %q: %w", column, err)}
		}
		if !slices.Contains(recordMembers, path[0]) {
			return nil, usageError{fmt.Errorf("--columns %q: a path begins with %s", column, strings.Join(recordMembers, ", "))}
		}
		paths[i] = path
	}
	return paths, nil
}

// cellAt is what stands at a path of a record: strings without quotes, other
// values as JSON, nothing where there is nothing.
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

// showChanged writes an instance after a change. The labels are waited for as long as the look before it.
func (o *output) showChanged(ctx context.Context, c *client.Client, i *client.Instance) error {
	ctx, cancel := context.WithTimeout(ctx, lookMax)
	defer cancel()
	_, seen := seenInstance(ctx, c, o, i.WorkflowID, i.ID)
	return o.showAs(i, nil, seen)
}

// showAs writes an instance, in a table with labels and what seenInstance knows more.
func (o *output) showAs(i *client.Instance, more [][]string, l *labels) error {
	if o.form != formTable {
		return o.document(i.Raw)
	}
	rows := append([][]string{
		{"ID", i.ID},
		{"WORKFLOW", i.WorkflowID},
		{"STATES", l.idText(i.States)},
	}, more...)
	if i.Sequence != 0 {
		rows = append(rows, []string{"SEQUENCE", strconv.FormatUint(i.Sequence, 10)})
	}
	if i.Redirect != "" {
		rows = append(rows, []string{"REDIRECT", i.Redirect})
	}
	rows = append(rows, []string{"PUBLIC", string(i.Public)})
	if len(i.Private) > 0 {
		rows = append(rows, []string{"PRIVATE", string(i.Private)})
	}
	if err := o.table(rows); err != nil || len(i.History) == 0 {
		return err
	}
	if _, err := fmt.Fprintln(o.to); err != nil {
		return err
	}
	if i.HistoryFrom > 1 {
		if _, err := fmt.Fprintf(o.to, "entries 1 to %d: troupe instance history %s %s\n", i.HistoryFrom-1, i.WorkflowID, i.ID); err != nil {
			return err
		}
	}
	rows = [][]string{historyHead}
	for n := range i.History {
		rows = append(rows, historyRow(&i.History[n], l))
	}
	return o.table(rows)
}

// attemptText says of an event that nothing took that it was one.
func attemptText(event string, attempt bool) string {
	if attempt {
		return event + " (tried; nothing changed)"
	}
	return event
}

var historyHead = []string{"TIME", "USER", "EVENT", "FROM", "TO"}

func historyRow(e *api.HistoryEntry, l *labels) []string {
	return []string{timeText(e.Time), e.User, attemptText(l.eventText(e), e.Attempt), l.nodeText(e.StartState), l.nodeText(e.EndState)}
}
