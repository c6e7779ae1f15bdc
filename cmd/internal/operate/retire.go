package operate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/config"
	"troupe/cmd/internal/connect"
	"troupe/cmd/internal/homedir"
	"troupe/statemachine"
)

func newDefinition() *cobra.Command {
	return cli.Group("definition", "Remove workflows, or versions of them, that nothing uses",
		"  troupe definition retire leave-request@2",
		newRetire())
}

func newRetire() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "retire ID[@VERSION]...",
		Short: "Remove versions of workflows that no instance has (needs mod-workflows)",
		Long: "Remove versions of workflows that no instance has, not even one that has ended;\n" +
			"without @VERSION all of a workflow. When the newest goes, the rules of the one before\n" +
			"hold. It needs mod-workflows, and is for owners of the workflow and holders of\n" +
			"mod-admin. A version that a file of the home names goes with the file.\n\n" +
			"With --home it asks the server that runs there, or opens the store itself when none\n" +
			"does.",
		Example: "  troupe definition retire leave-request@2\n" +
			"  troupe definition retire --home /srv/troupe old-workflow",
	}
	at := connect.AddFlags(cmd)
	at.AddHome(cmd)
	connect.Complete(cmd, at)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		all, err := parseRetired(args)
		if err != nil {
			return err
		}
		retire, end, err := retiring(cmd, at)
		if err != nil {
			return err
		}
		var faults []error
		for _, r := range all {
			faults = append(faults, retireOne(cmd.OutOrStdout(), r, retire))
		}
		return errors.Join(append(faults, end())...)
	}
	return cmd
}

// retired is a version of a workflow; 0 is all of it.
type retired struct {
	id      string
	version uint64
}

func parseRetired(args []string) (all []retired, err error) {
	for _, arg := range args {
		id, text, found := strings.Cut(arg, "@")
		r := retired{id: id}
		if found {
			if r.version, err = strconv.ParseUint(text, 10, 64); err != nil || r.version == 0 {
				return nil, cli.Usagef("%q: a version is a number from 1: ID@VERSION", arg)
			}
		}
		all = append(all, r)
	}
	return all, nil
}

func retireOne(out io.Writer, r retired, retire func(id string, version uint64) ([]uint64, error)) error {
	gone, err := retire(r.id, r.version)
	if err != nil {
		return err
	}
	for _, version := range gone {
		if _, err := fmt.Fprintf(out, "%s@%d\n", r.id, version); err != nil {
			return err
		}
	}
	return nil
}

// retiring returns what retires: the service, or the store of a home on which no server runs.
func retiring(cmd *cobra.Command, at *connect.Connection) (retire func(string, uint64) ([]uint64, error), end func() error, err error) {
	if at.Home != "" && !homedir.IsServed(cmd.Context(), at.Home) {
		return retiringOffline(cmd.Context(), at.Home)
	}
	service, err := at.Client(0)
	if err != nil {
		return nil, nil, err
	}
	retire = func(id string, version uint64) ([]uint64, error) {
		gone, err := service.Retire(cmd.Context(), id, version)
		if err != nil {
			return nil, connect.Explain(connect.SuggestWorkflow(cmd.Context(), service, id, err))
		}
		return gone.Versions, nil
	}
	return retire, func() error { service.Close(); return nil }, nil
}

func retiringOffline(ctx context.Context, dir string) (retire func(string, uint64) ([]uint64, error), end func() error, err error) {
	c := config.New()
	c.Home = dir
	store, err := c.OpenStore(zerolog.Nop())
	if err != nil {
		return nil, nil, err
	}
	parser, err := statemachine.NewParser(statemachine.ParserOptions{})
	var definitions *catalog.Catalog
	if err == nil {
		definitions, err = catalog.Open(catalog.Options{Store: store, Parser: parser, Log: zerolog.Nop()})
	}
	if err != nil {
		return nil, nil, errors.Join(err, store.Close())
	}
	retire = func(id string, version uint64) ([]uint64, error) {
		gone, err := definitions.Retire(ctx, id, version, nil)
		if errors.Is(err, failure.ErrNotFound) {
			err = fmt.Errorf("%s: there is no such workflow or version in the store", id)
		}
		return gone, err
	}
	return retire, store.Close, nil
}
