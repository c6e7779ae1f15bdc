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

// completing has the shell complete the arguments that Use calls WORKFLOW and EVENT with what the service says.
func completing(cmd *cobra.Command, at *connection) {
	names := strings.Fields(cmd.Use)[1:]
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= len(names) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		c, err := at.client(0)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer c.Close()
		var known []string
		switch strings.Trim(names[len(args)], "[]") {
		case "WORKFLOW":
			known = workflowsKnown(cmd.Context(), c)
		case "EVENT":
			if names[0] == "ID" { // of a task
				task, err := c.Task(cmd.Context(), args[0])
				for i := 0; err == nil && i < len(task.Events); i++ {
					known = append(known, task.Events[i].Name)
				}
				break
			}
			known = eventsKnown(cmd.Context(), c, args[0], args[1])
		case "INSTANCE":
			page, err := c.Instances(cmd.Context(), client.ListRequest{WorkflowID: args[0]})
			for i := 0; err == nil && i < len(page.Instances); i++ {
				known = append(known, page.Instances[i].ID)
			}
		}
		return known, cobra.ShellCompDirectiveNoFileComp
	}
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
