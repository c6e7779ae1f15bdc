package main

import (
	"errors"
	"fmt"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"troupe/actors/home"
	"troupe/statemachine"
	"troupe/statemachine/document"
)

func newCheck() *cobra.Command {
	c := newConfigFlags()
	cmd := &cobra.Command{
		Use:     "check",
		Short:   "Check every text file of a home; prints all faults and exits 1 if there are any",
		Example: "  troupe check --home ./troupe-home",
		Args:    usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			faults, err := checkHome(c)
			if err != nil {
				return err
			}
			for _, f := range faults {
				_, _ = fmt.Fprintln(cmd.OutOrStdout(), f.Error())
			}
			if len(faults) > 0 {
				return fmt.Errorf("%d faults in %s", len(faults), c.home)
			}
			_, _ = fmt.Fprintln(cmd.ErrOrStderr(), "no faults")
			return nil
		},
	}
	cmd.Flags().AddFlag(c.flags.Lookup("home"))
	return cmd
}

// checkHome returns the faults of all text files together.
func checkHome(c *config) (document.Faults, error) {
	var all document.Faults
	if err := keepFaults(&all, c.load()); err != nil {
		return nil, err
	}
	if _, err := c.newGateway(zerolog.Nop()); err != nil {
		return nil, err
	}
	if _, err := c.newProvider(zerolog.Nop()); err != nil {
		return nil, err
	}
	if _, err := c.newBucket(zerolog.Nop()); err != nil {
		return nil, err
	}
	parser, err := statemachine.NewParser(statemachine.ParserOptions{})
	if err != nil {
		return nil, err
	}
	_, err = home.Load(c.home, parser)
	if err := keepFaults(&all, err); err != nil {
		return nil, err
	}
	all.Sort()
	return all, nil
}

// keepFaults moves the faults in err to all; what is no fault is returned.
func keepFaults(all *document.Faults, err error) error {
	var faults document.Faults
	if errors.As(err, &faults) {
		*all = append(*all, faults...)
		return nil
	}
	return err
}
