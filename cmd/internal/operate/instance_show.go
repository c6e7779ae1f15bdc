package operate

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"troupe/cmd/internal/cli"
	"troupe/gateway/api"
	"troupe/gateway/client"
)

func newInstanceShow() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show WORKFLOW INSTANCE",
		Short: "Show an instance with its data and history",
		Example: "  troupe instance show leave-request 01M7YZAB2GNTJFQE62690KHSQT\n" +
			"  troupe instance show leave-request 01M7YZAB2GNTJFQE62690KHSQT -o yaml",
	}
	return asking(cmd, cli.AnyForm, func(cmd *cobra.Command, c *client.Client, out *cli.Output, args []string) error {
		i, err := c.Instance(cmd.Context(), client.InstanceRequest{WorkflowID: args[0], InstanceID: args[1]})
		if err != nil {
			return err
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
		for k := range page.Entries {
			if n < 0 || open == 0 {
				return
			}
			shown, e := &history[n], &page.Entries[k].HistoryEntry
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
		Use:   "events WORKFLOW INSTANCE",
		Short: "List the events that you may send to an instance now",
		Long: "List the events that you may send to an instance now, one line for each transition. " +
			"The guard is unknown where it depends on the data that comes with the event.",
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
