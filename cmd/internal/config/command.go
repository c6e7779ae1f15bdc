package config

import (
	"github.com/spf13/cobra"

	"troupe/cmd/internal/cli"
)

// Command is troupe config.
func Command() *cobra.Command {
	c := New()
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show every setting, its value, where it comes from and what it means",
		Example: "  troupe config --home ./troupe-home\n" +
			"  TROUPE_LISTEN=:9000 troupe config",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.Load(); err != nil {
				return err
			}
			rows := [][]string{{"KEY", "VALUE", "SOURCE", "ENVIRONMENT", "MEANING"}}
			for _, s := range c.Settings {
				rows = append(rows, []string{KeyName(s.Name), s.Value.String(), c.sources[s.Name], envName(s.Name), s.Help})
			}
			return cli.Table(cmd.OutOrStdout(), rows)
		},
	}
	cmd.Flags().AddFlagSet(c.Flags)
	return cmd
}
