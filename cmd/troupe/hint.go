package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"troupe/gateway/api"
	"troupe/gateway/client"
)

// hinted adds what was probably meant to the refusal of a name: another workflow, or another event. It asks the
// service; who may not list them gets the refusal alone.
func hinted(cmd *cobra.Command, c *client.Client, args []string, err error) error {
	var refused *client.Error
	if !errors.As(err, &refused) {
		return err
	}
	names := strings.Fields(cmd.Use)[1:]
	of := func(name string) string {
		if i := slices.Index(names, name); i >= 0 && i < len(args) {
			return args[i]
		}
		return ""
	}
	workflow, event := of("WORKFLOW"), of("EVENT")
	if workflow == "" {
		workflow = of("[WORKFLOW]")
	}
	meant := ""
	switch {
	case workflow == "":
	case refused.Status == http.StatusNotFound:
		meant = didYouMean(workflow, workflowsKnown(cmd.Context(), c))
	case event != "" && slices.Contains([]int{http.StatusBadRequest, http.StatusForbidden, http.StatusConflict}, refused.Status) && !isDeclared(cmd.Context(), c, workflow, of("INSTANCE"), event):
		meant = didYouMean(event, eventsKnown(cmd.Context(), c, workflow, of("INSTANCE")))
	}
	if meant == "" {
		return err
	}
	return fmt.Errorf("%w%s", err, meant)
}

// workflowsKnown are those that are published, or that the caller may create instances of.
func workflowsKnown(ctx context.Context, c *client.Client) (known []string) {
	if all, err := c.Definitions(ctx); err == nil {
		for _, w := range all {
			known = append(known, w.ID)
		}
		return known
	}
	choices, err := c.Choices(ctx)
	if err != nil {
		return nil
	}
	for _, w := range choices {
		known = append(known, w.ID)
	}
	return known
}

// eventsKnown are those that the caller may send to the instance now.
func eventsKnown(ctx context.Context, c *client.Client, workflow, instance string) (known []string) {
	events, err := c.Events(ctx, workflow, instance)
	if err != nil {
		return nil
	}
	for _, e := range events.Events {
		known = append(known, e.Name)
	}
	return known
}

// isDeclared reports whether the workflow of an instance has the event: then something else than its name is wrong.
func isDeclared(ctx context.Context, c *client.Client, workflow, instance, event string) bool {
	of, err := c.Summary(ctx, workflow, instance)
	if err != nil {
		return false
	}
	shown, err := c.Presentation(ctx, workflow, of.Version)
	return err == nil && slices.ContainsFunc(shown.Events, func(e api.PresentedEvent) bool { return e.Name == event })
}

// completing has the shell complete the arguments that Use names, and --workflow, with what the service says. A command that takes a
// file as well gets the names of files besides.
func completing(cmd *cobra.Command, at *connection) {
	directive := cobra.ShellCompDirectiveNoFileComp
	if cmd.Name() == "diagram" {
		directive = cobra.ShellCompDirectiveDefault
	}
	asked := func(ask func(c *client.Client) []string) ([]string, cobra.ShellCompDirective) {
		c, err := at.client(0)
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
		completingFlag(cmd, "workflow", func() (known []string) {
			known, _ = asked(func(c *client.Client) []string { return workflowsKnown(cmd.Context(), c) })
			return known
		})
	}
}

// argumentsKnown are what the argument that Use calls name can be, behind those of before.
func argumentsKnown(cmd *cobra.Command, c *client.Client, name string, before []string) (known []string) {
	ctx, group := cmd.Context(), cmd.Parent().Name()
	switch {
	case name == "EVENT" && group == "task":
		if t, err := c.Task(ctx, before[0]); err == nil {
			for _, e := range t.Events {
				known = append(known, e.Name)
			}
		}
	case name == "EVENT":
		return eventsKnown(ctx, c, before[0], before[1])
	case name == "INSTANCE":
		if page, err := c.Instances(ctx, client.ListRequest{WorkflowID: before[0]}); err == nil {
			for _, i := range page.Instances {
				known = append(known, i.ID)
			}
		}
	case name == "ID" && group == "task":
		if page, err := c.Tasks(ctx, client.TasksRequest{}); err == nil {
			for _, t := range page.Tasks {
				known = append(known, t.TaskID)
			}
		}
	case name == "ID" && group == "incident":
		if page, err := c.Incidents(ctx, client.IncidentsRequest{}); err == nil {
			for _, i := range page.Incidents {
				known = append(known, i.ID)
			}
		}
	case name == "ID" && group == "outbox":
		if page, err := c.Outbox(ctx, client.OutboxRequest{}); err == nil {
			for _, d := range page.Outbox {
				known = append(known, d.ID)
			}
		}
	case name == "WORKFLOW/NAME":
		if list, err := c.Schedules(ctx); err == nil {
			for _, s := range list.Schedules {
				known = append(known, s.WorkflowID+"/"+s.Name)
			}
		}
	case name == "WORKFLOW", strings.HasPrefix(name, "ID"):
		return workflowsKnown(ctx, c)
	}
	return known
}

// completingFlag has the shell complete a flag.
func completingFlag(cmd *cobra.Command, flag string, known func() []string) {
	if err := cmd.RegisterFlagCompletionFunc(flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return known(), cobra.ShellCompDirectiveNoFileComp
	}); err != nil { // the flag is not there, or has it already
		panic(err)
	}
}

// oneOf has the shell complete a flag with one of the words.
func oneOf(cmd *cobra.Command, flag string, words ...string) {
	completingFlag(cmd, flag, func() []string { return words })
}

// contextsKnown are the names of the contexts.
func contextsKnown() []string {
	all, err := loadContexts()
	if err != nil {
		return nil
	}
	return all.names()
}

// jsonFault says where a text stops being JSON.
func jsonFault(text []byte) error {
	var v any
	err := json.Unmarshal(text, &v)
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return err
	}
	at := min(max(int(syntax.Offset)-1, 0), len(text)) // NB: the offset is behind what is wrong
	if strings.Contains(syntax.Error(), "unexpected end") {
		at = len(text)
	}
	before := text[:at]
	line := 1 + bytes.Count(before, []byte("\n"))
	column := 1 + len([]rune(string(before[bytes.LastIndexByte(before, '\n')+1:])))
	return fmt.Errorf("line %d, column %d: %w", line, column, syntax)
}
