package operate

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/connect"
	"troupe/gateway/api"
	"troupe/gateway/client"
)

func newWorkflow() *cobra.Command {
	return cli.Group("workflow", "List and show the workflows of a service",
		"  troupe workflow list\n"+
			"  troupe workflow show leave-request",
		newWorkflowList(), newWorkflowShow())
}

func newWorkflowList() *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Short: "List workflows",
		Long: `Lists all workflows with their versions to holders of mod-workflows, and to others those that they can create
instances of.`,
		Example: "  troupe workflow list\n" +
			"  troupe workflow list -o jsonl",
	}
	return operating(cmd, cli.AnyForm, func(cmd *cobra.Command, c *client.Client, out *cli.Output, _ []string) error {
		l := &lister{cmd: cmd, out: out, member: "definitions", things: "workflows", head: []string{"ID", "NAME", "CURRENT", "VERSIONS", "NEW INSTANCES", "OWNERS"}}
		all, err := c.Definitions(cmd.Context())
		if refused := (*client.Error)(nil); errors.As(err, &refused) && refused.Status == http.StatusForbidden {
			choices, err := c.Choices(cmd.Context())
			if err != nil {
				return err
			}
			l.member, l.head = "workflows", []string{"ID", "NAME"}
			return l.whole(pageOf(nil, "", choices, func(w *api.Choice) []string { return []string{w.ID, w.Name} }))
		}
		if err != nil {
			return err
		}
		return l.whole(pageOf(nil, "", all, func(w *api.PublishedWorkflow) []string {
			return []string{w.ID, w.Name, strconv.FormatUint(w.Current, 10), strconv.Itoa(len(w.Versions)), creatableText(w.Creatable), ownersText(w.Owners)}
		}))
	})
}

func creatableText(creatable bool) string {
	if creatable {
		return "yes"
	}
	return "closed"
}

func ownersText(o api.Owners) string {
	return namesText(o.Roles, o.Users, o.Privileges)
}

// namesText shows who is meant by roles, users and privileges: "role:manager user:john.doe".
func namesText(roles, users, privileges []string) string {
	var texts []string
	for kind, names := range map[string][]string{"role": roles, "user": users, "privilege": privileges} {
		for _, name := range names {
			texts = append(texts, kind+":"+name)
		}
	}
	slices.Sort(texts)
	return strings.Join(texts, " ")
}

func newWorkflowShow() *cobra.Command {
	cmd := &cobra.Command{
		Use: "show WORKFLOW[@VERSION]", Short: "Show a workflow: its versions, states and events",
		Long: `With -o json, jsonl or yaml it shows the version as it was published, which needs mod-workflows; "text" is the
definition.`,
		Example: "  troupe workflow show leave-request\n" +
			"  troupe workflow show leave-request@2 -o json",
	}
	return operating(cmd, cli.AnyForm, func(cmd *cobra.Command, c *client.Client, out *cli.Output, args []string) error {
		versions, err := parseVersions(args)
		if err != nil {
			return err
		}
		id, number := versions[0].workflow, versions[0].number
		if out.Form != cli.FormTable {
			definition, err := c.Definition(cmd.Context(), id, number)
			if err != nil {
				return connect.SuggestWorkflow(cmd.Context(), c, id, err)
			}
			return out.Marshaled(json.Marshal(definition))
		}
		shown, err := c.Presentation(cmd.Context(), id, number)
		if err != nil {
			return connect.SuggestWorkflow(cmd.Context(), c, id, err)
		}
		rows := [][]string{{"WORKFLOW", shown.WorkflowID}, {"NAME", shown.Name}, {"VERSION", strconv.FormatUint(shown.Version, 10)}}
		if all, err := c.Definitions(cmd.Context()); err == nil { // holders of mod-workflows see more
			if i := slices.IndexFunc(all, func(w api.PublishedWorkflow) bool { return w.ID == id }); i >= 0 {
				rows = append(rows, aboutVersions(&all[i])...)
			}
		}
		if err := out.Table(rows); err != nil {
			return err
		}
		states := [][]string{{"STATE", "MACHINE", "LABEL"}}
		for _, n := range shown.Nodes {
			states = append(states, []string{n.NodeID, n.StateMachineID, n.Label})
		}
		events := [][]string{{"EVENT", "LABEL"}}
		for _, e := range shown.Events {
			events = append(events, []string{e.Name, e.Label})
		}
		for _, part := range [][][]string{states, events} {
			if _, err := fmt.Fprintln(out.To); err != nil {
				return err
			}
			if err := out.Table(part); err != nil {
				return err
			}
		}
		return nil
	})
}

// version is a version of a workflow, which an argument names as ID@VERSION; the number is 0 when it names none.
type version struct {
	workflow string
	number   uint64
}

func parseVersions(args []string) (all []version, err error) {
	for _, arg := range args {
		id, text, found := strings.Cut(arg, "@")
		v := version{workflow: id}
		if found {
			if v.number, err = strconv.ParseUint(text, 10, 64); err != nil || v.number == 0 {
				return nil, cli.Usagef("%q: a version is a number from 1: ID@VERSION", arg)
			}
		}
		all = append(all, v)
	}
	return all, nil
}

func aboutVersions(w *api.PublishedWorkflow) [][]string {
	versions := make([]string, len(w.Versions))
	for i, v := range w.Versions {
		versions[i] = strconv.FormatUint(v, 10)
	}
	rows := [][]string{
		{"CURRENT", strconv.FormatUint(w.Current, 10)},
		{"VERSIONS", strings.Join(versions, ", ")},
		{"NEW INSTANCES", creatableText(w.Creatable)},
		{"OWNERS", cmp.Or(ownersText(w.Owners), "privilege:mod-admin")},
	}
	if w.Publisher != nil {
		rows = append(rows, []string{"PUBLISHER", *w.Publisher})
	}
	return rows
}
