package operate

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"troupe/actors"
	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/connect"
	"troupe/gateway/admin"
)

func newActors() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "actors",
		Short: "Show the actors of the server that runs on a home, as a tree",
		Long: "Instances and workers are counted. Their MAILBOX is the number of unanswered calls; that of other actors is the\n" +
			"number of messages in their mailbox.",
		Example: "  troupe actors --home ./troupe-home\n  troupe actors -o json",
	}
	o := cli.AddOutput(cmd, cli.FormTable, cli.FormJSON, cli.FormYAML)
	return connect.AtHome(cmd, func(ctx context.Context, server *admin.Client) error {
		text, err := server.Actors(ctx)
		if err != nil {
			return err
		}
		if o.Form != cli.FormTable {
			return o.Document(text)
		}
		var root actors.Branch
		if err := json.Unmarshal(text, &root); err != nil {
			return err
		}
		return o.Table(rowsOf([][]string{{"ACTOR", "KIND", "SHARD", "STATE", "COUNT", "MAILBOX", "RESTARTS"}}, &root, 0))
	})
}

// rowsOf appends an actor and what is below it.
func rowsOf(rows [][]string, b *actors.Branch, depth int) [][]string {
	shard := ""
	if b.Shard != nil {
		shard = strconv.Itoa(int(*b.Shard))
	}
	rows = append(rows, []string{
		strings.Repeat("  ", depth) + b.Name, b.Kind, shard, b.State,
		strconv.Itoa(b.Count), strconv.Itoa(b.Mailbox), strconv.FormatInt(b.Restarts, 10),
	})
	for k := range b.Children {
		rows = rowsOf(rows, &b.Children[k], depth+1)
	}
	return rows
}
