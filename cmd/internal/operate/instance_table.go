package operate

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"troupe/cmd/internal/cli"
	"troupe/gateway/api"
	"troupe/gateway/client"
	"troupe/statemachine/data"
)

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
		rows = append(rows, historyRow(&i.History[n], l))
	}
	return o.Table(rows)
}

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
