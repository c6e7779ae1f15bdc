package connect

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/config"
	"troupe/cmd/internal/homedir"
	"troupe/gateway/admin"
)

// AtHome gives a command the flag of a home, and has it ask the server that runs there, within cli.CommandTimeMax.
func AtHome(cmd *cobra.Command, do func(ctx context.Context, server *admin.Client) error) *cobra.Command {
	c := config.New()
	cmd.Flags().AddFlag(c.Flags.Lookup("home"))
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := c.LoadQuiet(); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), cli.CommandTimeMax)
		defer cancel()
		server, err := Dial(ctx, c.Home)
		if err != nil {
			return err
		}
		return do(ctx, server)
	}
	return cmd
}

// Dial is homedir.Dial, with what to do when no server runs there.
func Dial(ctx context.Context, dir string) (*admin.Client, error) {
	server, err := homedir.Dial(ctx, dir)
	if errors.Is(err, admin.ErrNoServer) {
		err = fmt.Errorf("no server is running on %s: start it with `troupe serve --home %s`", dir, dir)
	}
	return server, err
}
