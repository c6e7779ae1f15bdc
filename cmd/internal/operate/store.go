package operate

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/config"
	"troupe/cmd/internal/homedir"
	"troupe/persistence"
)

func newStore() *cobra.Command {
	return cli.Group("store", "Look after the store of a home", "  troupe store create --home ./troupe-home", newStoreCreate())
}

func newStoreCreate() *cobra.Command {
	c := config.New()
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Make an empty store in a home whose store is gone for good",
		Long: "Make an empty store in a home. The first start does that by itself. Every later start\n" +
			"demands the same store, so that a disk that is not mounted is not mistaken for a new\n" +
			"home. Use this command only for a store that is gone for good. It never touches a\n" +
			"store that is there.",
		Example: "  troupe store create --home ./troupe-home",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.LoadQuiet(); err != nil {
				return err
			}
			if c.IsNode() {
				return c.AdviceForNode(fmt.Errorf("%s is a node of a cluster; nothing was changed", c.Home))
			}
			if err := homedir.Demand(c.Home); err != nil {
				return err
			}
			if err := homedir.AloneAt(cmd.Context(), c.Home); err != nil {
				return err
			}
			if err := homedir.DemandFile(filepath.Join(c.Home, homedir.StoreIDFile)); err != nil {
				return err
			}
			dir := homedir.Data(c.Home)
			if err := persistence.Create(dir, c.StoreOptions(c.Logger())); err != nil {
				return err
			}
			_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "%s holds an empty store now\n", dir)
			return nil
		},
	}
	cmd.Flags().AddFlag(c.Flags.Lookup("home"))
	cmd.Flags().AddFlag(c.Flags.Lookup("shards"))
	return cmd
}
