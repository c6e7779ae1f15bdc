package author

import (
	"fmt"

	"github.com/spf13/cobra"

	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/config"
	"troupe/cmd/internal/homedir"
	"troupe/cmd/internal/scaffold"
)

func newInit() *cobra.Command {
	return &cobra.Command{
		Use:     "init DIR",
		Short:   "Make a small home to begin with",
		Long:    "Make a small home to begin with: two users and one workflow, in a folder that is missing or empty.\nAn empty folder that troupe serve is given gets the larger example instead.",
		Example: "  troupe init ./office && troupe serve --home ./office",
		RunE: func(cmd *cobra.Command, args []string) error {
			files, err := scaffold.Home(args[0])
			if err != nil {
				return err
			}
			for _, file := range files {
				_, _ = fmt.Fprintln(cmd.OutOrStdout(), file)
			}
			_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "start it with: troupe serve --home %[1]s\n"+
				"then, so that Alice can sign in: echo 'a password' | troupe password set --home %[1]s --user alice\n", args[0])
			return nil
		},
	}
}

func newNew() *cobra.Command {
	c := config.New()
	workflow := &cobra.Command{
		Use:     "workflow NAME",
		Short:   "Add a workflow to a home: a request that somebody approves",
		Example: "  troupe new workflow travel-request --home ./office",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.Load(); err != nil {
				return err
			}
			if err := homedir.Demand(c.Home); err != nil {
				return err
			}
			file, err := scaffold.Workflow(c.Home, args[0])
			if err != nil {
				return err
			}
			_, _ = fmt.Fprintln(cmd.OutOrStdout(), file)
			return nil
		},
	}
	workflow.Flags().AddFlag(c.Flags.Lookup("home"))
	return cli.Group("new", "Add files to a home", "  troupe new workflow travel-request", workflow)
}
