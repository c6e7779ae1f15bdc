package export

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/connect"
	"troupe/gateway/admin"
	"troupe/gateway/client"
)

func newList() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the exports of the server that runs on a home",
		Long: "The setting exports has them. POSITION is when the newest entry was committed that the target has confirmed, LAG how\n" +
			"long the oldest one waits that it has not; ROWS and GAPS are counted since the start. In a cluster all nodes are asked.",
		Example: "  troupe export list --home ./troupe-home\n  troupe export list -o json",
	}
	o := cli.AddOutput(cmd, cli.FormTable, cli.FormJSON, cli.FormYAML)
	return connect.AtHome(cmd, func(ctx context.Context, server *admin.Client) error {
		list, err := server.Exports(ctx)
		if err != nil {
			return err
		}
		if o.Form != cli.FormTable {
			return o.Marshaled(json.Marshal(list))
		}
		rows := [][]string{{"NAME", "TO", "WORKFLOWS", "POSITION", "LAG", "ROWS", "GAPS", "ERROR"}}
		for _, e := range list {
			position := ""
			if !e.Position.IsZero() {
				position = e.Position.Format(time.RFC3339)
			}
			lag := time.Duration(e.LagSeconds * float64(time.Second)).Round(time.Second)
			rows = append(rows, []string{
				e.Name, client.Printable(e.Target), strings.Join(e.Workflows, ","), position, lag.String(),
				strconv.FormatInt(e.Rows, 10), strconv.FormatInt(e.Gaps, 10), client.Printable(e.Error),
			})
		}
		return o.Listing(cmd.ErrOrStderr(), "exports", rows)
	})
}
