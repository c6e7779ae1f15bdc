package operate

import (
	"fmt"

	"github.com/spf13/cobra"

	"troupe/cmd/internal/cli"
	"troupe/gateway/client"
)

func newInstanceStop() *cobra.Command {
	tree := false
	cmd := &cobra.Command{
		Use: "stop WORKFLOW INSTANCE", Short: "Stop an instance and all that it has invoked (needs mod-workflows)",
		Long: "Stop an instance and all that it has invoked. Each is cancelled: it takes nothing more, and nothing starts again. One that another\n" +
			"instance has invoked is refused, and the message names that one.",
		Example: "  troupe instance stop purchase 01M7YZAB2GNTJFQE62690KHSQT --tree",
	}
	cmd.Flags().BoolVar(&tree, "tree", false, "with it all that it has invoked ends (required)")
	return operating(cmd, nil, func(cmd *cobra.Command, c *client.Client, _ *cli.Output, args []string) error {
		if !tree {
			return cli.Usagef("say --tree: with the instance all that it has invoked ends")
		}
		if err := c.StopTree(cmd.Context(), args[0], args[1]); err != nil {
			return err
		}
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s/%s has ended; what it had invoked ends with it\n", client.Printable(args[0]), client.Printable(args[1]))
		return err
	})
}
