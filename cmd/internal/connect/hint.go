package connect

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"troupe/cmd/internal/cli"
	"troupe/gateway/api"
	"troupe/gateway/client"
)

// WorkflowsKnown are those that are published, or that the caller may create instances of.
func WorkflowsKnown(ctx context.Context, c *client.Client) []string {
	if all, err := c.Definitions(ctx); err == nil {
		return namesOf(all, func(w *api.PublishedWorkflow) string { return w.ID })
	}
	choices, _ := c.Choices(ctx)
	return namesOf(choices, func(w *api.Choice) string { return w.ID })
}

// EventsKnown are those that the caller may send to the instance now.
func EventsKnown(ctx context.Context, c *client.Client, workflow, instance string) []string {
	if events, err := c.Events(ctx, workflow, instance); err == nil {
		return namesOf(events.Events, func(e *api.Event) string { return e.Name })
	}
	return nil
}

func namesOf[T any](all []T, name func(*T) string) (names []string) {
	for i := range all {
		names = append(names, name(&all[i]))
	}
	return names
}

// IsDeclared reports whether the workflow of an instance has the event: then something else than its name is wrong.
func IsDeclared(ctx context.Context, c *client.Client, workflow, instance, event string) bool {
	of, err := c.Summary(ctx, workflow, instance)
	if err != nil {
		return false
	}
	shown, err := c.Presentation(ctx, workflow, of.Version)
	return err == nil && slices.ContainsFunc(shown.Events, func(e api.PresentedEvent) bool { return e.Name == event })
}

// Complete has the shell complete the arguments that Use names, and --workflow, with what the service says.
func Complete(cmd *cobra.Command, at *Connection) {
	directive := cobra.ShellCompDirectiveNoFileComp
	if cmd.Name() == "diagram" {
		directive = cobra.ShellCompDirectiveDefault
	}
	asked := func(ask func(c *client.Client) []string) ([]string, cobra.ShellCompDirective) {
		c, err := at.Client(0)
		if err != nil {
			return nil, directive
		}
		defer c.Close()
		return ask(c), directive
	}
	names := strings.Fields(cmd.Use)[1:]
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(names) == 0 || len(args) >= len(names) && !strings.HasSuffix(names[len(names)-1], "...") {
			return nil, directive
		}
		name := names[min(len(args), len(names)-1)]
		return asked(func(c *client.Client) []string { return argumentsKnown(cmd, c, strings.Trim(name, "[]."), args) })
	}
	if cmd.Flags().Lookup("workflow") != nil {
		cli.CompleteFlag(cmd, "workflow", func() (known []string) {
			known, _ = asked(func(c *client.Client) []string { return WorkflowsKnown(cmd.Context(), c) })
			return known
		})
	}
}

func argumentsKnown(cmd *cobra.Command, c *client.Client, name string, before []string) []string {
	ctx := cmd.Context()
	switch group := cmd.Parent().Name(); {
	case name == "EVENT" && group == "task":
		if t, err := c.Task(ctx, before[0]); err == nil {
			return namesOf(t.Events, func(e *api.TaskEvent) string { return e.Name })
		}
	case name == "EVENT":
		return EventsKnown(ctx, c, before[0], before[1])
	case name == "INSTANCE":
		if page, err := c.Instances(ctx, client.ListRequest{WorkflowID: before[0]}); err == nil {
			return namesOf(page.Items, func(i *client.Instance) string { return i.ID })
		}
	case name == "ID" && group == "task":
		if page, err := c.Tasks(ctx, client.TasksRequest{}); err == nil {
			return namesOf(page.Items, func(t *api.Task) string { return t.TaskID })
		}
	case name == "ID" && group == "incident":
		if page, err := c.Incidents(ctx, client.IncidentsRequest{}); err == nil {
			return namesOf(page.Items, func(i *api.Incident) string { return i.ID })
		}
	case name == "ID" && group == "outbox":
		if page, err := c.Outbox(ctx, client.OutboxRequest{}); err == nil {
			return namesOf(page.Items, func(d *api.Delivery) string { return d.ID })
		}
	case name == "WORKFLOW/NAME":
		if list, err := c.Schedules(ctx); err == nil {
			return namesOf(list.Schedules, func(s *api.Schedule) string { return s.WorkflowID + "/" + s.Name })
		}
	case name == "WORKFLOW", strings.HasPrefix(name, "ID"):
		return WorkflowsKnown(ctx, c)
	}
	return nil
}

func contextsKnown() []string {
	all, err := LoadContexts()
	if err != nil {
		return nil
	}
	return all.names()
}

// SuggestWorkflow adds the closest workflow to an answer that there is none.
func SuggestWorkflow(ctx context.Context, c *client.Client, id string, err error) error {
	var refused *client.Error
	if !errors.As(err, &refused) || refused.Status != http.StatusNotFound {
		return err
	}
	all, _ := c.Definitions(ctx)
	return fmt.Errorf("%w%s", err, cli.DidYouMean(id, namesOf(all, func(w *api.PublishedWorkflow) string { return w.ID })))
}
