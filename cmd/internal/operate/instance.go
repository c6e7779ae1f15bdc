// Package operate has the commands that work with what runs: instances, tasks, what was sent out, incidents, timers,
// schedules, definitions that nothing uses, and a store that is gone. All but the last ask a service.
package operate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/cmd/internal/backup"
	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/config"
	"troupe/cmd/internal/connect"
	"troupe/cmd/internal/homedir"
	"troupe/cmd/internal/store"
	"troupe/gateway/api"
	"troupe/gateway/client"
	"troupe/persistence"
	"troupe/statemachine"
	"troupe/statemachine/document"
)

func newInstance() *cobra.Command {
	return cli.Group("instance", "List, show, create, advance and watch instances",
		"  troupe instance create leave-request --public '{\"from\": \"2026-12-21\"}'\n"+
			"  troupe instance list leave-request --filter '{\"states.nodeId\": \"review\"}'",
		newInstanceList(), newInstanceShow(), newInstanceCreate(), newInstanceSend(),
		newInstanceHistory(), newInstanceActivity(), newInstanceComment(), newInstancePending(), newInstanceWatch(), newInstanceEvents(), newInstanceMigrate(), newInstanceStop(), newInstanceReset(), newInstanceDelete())
}

// Commands are those that work with what runs.
func Commands() []*cobra.Command {
	return []*cobra.Command{newInstance(), newWorkflow(), newTask(), newOutbox(), newIncident(), newTimer(), newSchedule(), newBulk(), newDefinition(), newStore(), newActors(), newAudit(), newUser(), newRole()}
}

func newInstanceStop() *cobra.Command {
	tree := false
	cmd := &cobra.Command{
		Use: "stop WORKFLOW INSTANCE", Short: "Stop an instance and everything it invoked (needs mod-workflows)",
		Long: `Each of them is cancelled and accepts no more events. An instance that another one invoked is refused: the
error names its parent.`,
		Example: "  troupe instance stop purchase 01M7YZAB2GNTJFQE62690KHSQT --tree",
	}
	cmd.Flags().BoolVar(&tree, "tree", false, "also stop everything it invoked (required)")
	return operating(cmd, nil, func(cmd *cobra.Command, c *client.Client, _ *cli.Output, args []string) error {
		if !tree {
			return cli.Usagef("--tree is required: everything that the instance invoked is stopped with it")
		}
		if err := c.StopTree(cmd.Context(), args[0], args[1]); err != nil {
			return err
		}
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s/%s was stopped, and everything it invoked is being stopped\n", client.Printable(args[0]), client.Printable(args[1]))
		return err
	})
}

func newInstanceReset() *cobra.Command {
	r := client.ResetRequest{}
	cmd := &cobra.Command{
		Use: "reset WORKFLOW INSTANCE", Short: "Make an instance what it was after an entry of its history (needs mod-workflows)",
		Long: `Its data and states become those after the entry (troupe instance history numbers them), as a new entry. What it waits
for now ends, and its tasks, timers, jobs and children begin again; no other action is run. An instance that has ended
can be reset, too. When its data changes and is of more than 16 KiB, the new entry does not keep it: nobody can look at
the moments from there on, or reset to them.`,
		Example: "  troupe instance reset purchase 01M7YZAB2GNTJFQE62690KHSQT --to 3 --reason 'the supplier was wrong'",
	}
	cmd.Flags().Var(cli.Sequence(&r.To), "to", "number of the entry, from 1 (required)")
	cmd.Flags().StringVar(&r.Reason, "reason", "", "why: the history keeps it (required)")
	cmd.Flags().Uint64Var(&r.IfMatch, "if-match", 0, "only if the instance has this many entries")
	return operating(cmd, []string{cli.FormTable, cli.FormJSON}, func(cmd *cobra.Command, c *client.Client, out *cli.Output, args []string) error {
		switch {
		case r.To == 0:
			return cli.Usagef("--to is required: the number of an entry of the history, from 1")
		case strings.TrimSpace(r.Reason) == "":
			return cli.Usagef("--reason is required: the history keeps it")
		}
		r.WorkflowID, r.InstanceID, r.Minimal = args[0], args[1], out.Form == cli.FormTable
		in, err := c.Reset(cmd.Context(), r)
		if err != nil {
			return err
		}
		return showChanged(cmd.Context(), c, out, in)
	})
}

func newInstanceDelete() *cobra.Command {
	cascade := false
	cmd := &cobra.Command{
		Use: "delete WORKFLOW INSTANCE", Short: "Delete an instance and everything stored of it (needs mod-workflows)",
		Long: `Record, history, data, drafts, comments, tasks, timers and deliveries go in one commit. There is no way back. An
instance that another one needs is refused: its parent waits for it, or an instance that it invoked is running.`,
		Example: "  troupe instance delete purchase 01M7YZAB2GNTJFQE62690KHSQT\n" +
			"  troupe instance delete purchase 01M7YZAB2GNTJFQE62690KHSQT --cascade",
	}
	cmd.Flags().BoolVar(&cascade, "cascade", false, "stop and delete everything it invoked first; a waiting parent hears that it failed")
	return operating(cmd, nil, func(cmd *cobra.Command, c *client.Client, _ *cli.Output, args []string) error {
		if err := c.DeleteInstance(cmd.Context(), args[0], args[1], cascade); err != nil {
			return err
		}
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s/%s was deleted\n", client.Printable(args[0]), client.Printable(args[1]))
		return err
	})
}

func newInstanceMigrate() *cobra.Command {
	var file, filter string
	dryRun, limit := false, 0
	cmd := &cobra.Command{
		Use:   "migrate WORKFLOW",
		Short: "Migrate running instances to another version (needs mod-workflows)",
		Long: `The plan names both versions and maps renamed nodes (statemachine/DEFINITION.md, "Migration"). Each instance is
migrated in one commit with one history entry. An instance that does not fit the new version is refused and stays
as it is; the exit code is then 1. To continue after an interruption, repeat the command. For a plan with assign
you must own the workflow or have mod-admin.`,
		Example: "  troupe instance migrate invoice-approval --plan plan.yaml --dry-run\n" +
			"  troupe instance migrate invoice-approval --plan plan.yaml --filter '{\"states.nodeId\": \"review\"}'",
	}
	cmd.Flags().StringVar(&file, "plan", "", "file with the plan, YAML or JSON")
	cmd.Flags().StringVar(&filter, "filter", "", "only matching instances: a JSON filter")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only show what would be done")
	cmd.Flags().IntVar(&limit, "limit", 1000, "instances per request, 1 to 1000")
	return operating(cmd, []string{cli.FormTable, cli.FormJSON}, func(cmd *cobra.Command, c *client.Client, out *cli.Output, args []string) error {
		request := &api.MigrationRequest{DryRun: dryRun, Limit: limit}
		switch {
		case file == "":
			return cli.Usagef("--plan is required: a file that names both versions")
		case limit < 1 || limit > 1000:
			return cli.Usagef("--limit must be 1 to 1000")
		case filter != "" && !json.Valid([]byte(filter)):
			return cli.Usagef("--filter is not JSON")
		case filter != "":
			request.Filter = json.RawMessage(filter)
		}
		text, err := os.ReadFile(file)
		if err == nil {
			request.Plan, err = json.Marshal(string(text))
		}
		if err != nil {
			return err
		}
		total, err := migrateAll(cmd, c, args[0], file, request)
		if err != nil {
			return err
		}
		if total.Matched == 0 && filter != "" {
			fmt.Fprintln(cmd.ErrOrStderr(), "No instance matches. A filter on data finds only instances that you may read.")
		}
		return showMigrated(out, total, dryRun)
	})
}

func migrateAll(cmd *cobra.Command, c *client.Client, workflow, file string, request *api.MigrationRequest) (api.MigrationAnswer, error) {
	total := api.MigrationAnswer{Refused: []api.MigrationRefusal{}}
	for {
		page, err := c.Migrate(cmd.Context(), workflow, request)
		if refused := (*client.Error)(nil); errors.As(err, &refused) && len(refused.Faults) > 0 {
			return total, planFaults(file, refused.Faults)
		}
		if err != nil {
			if total.Migrated > 0 && !request.DryRun {
				err = fmt.Errorf("%w (%s migrated so far; repeat the command to continue)", err, cli.Plural(total.Migrated, "instance"))
			}
			return total, err
		}
		total.Matched += page.Matched
		total.Migrated += page.Migrated
		total.Refused = append(total.Refused, page.Refused...)
		if page.Next == nil {
			return total, nil
		}
		request.Cursor = *page.Next
	}
}

func planFaults(file string, wire []api.FileFault) error {
	faults := document.Faults{}
	for _, f := range connect.FaultsOf(wire) {
		f.File = file
		faults = append(faults, f)
	}
	return faults
}

func showMigrated(out *cli.Output, total api.MigrationAnswer, dryRun bool) error {
	if out.Form == cli.FormJSON {
		if err := out.Marshaled(json.Marshal(total)); err != nil {
			return err
		}
	} else {
		word := "migrated"
		if dryRun {
			word = "would be migrated"
		}
		rows := [][]string{{"MATCHED", fmt.Sprint(total.Matched)}, {strings.ToUpper(word), fmt.Sprint(total.Migrated)}, {"REFUSED", fmt.Sprint(len(total.Refused))}}
		for _, r := range total.Refused {
			rows = append(rows, []string{r.InstanceID, r.Reason})
		}
		if err := out.Table(rows); err != nil {
			return err
		}
	}
	if n := len(total.Refused); n > 0 {
		return fmt.Errorf("%s refused", cli.Plural(n, "instance"))
	}
	return nil
}

func newDefinition() *cobra.Command {
	return cli.Group("definition", "Remove unused workflows and versions",
		"  troupe definition retire leave-request@2",
		newRetire())
}

func newRetire() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "retire ID[@VERSION]...",
		Short: "Remove workflow versions that no instance uses (needs mod-workflows)",
		Long: `You must own the workflow or have mod-admin. Ended instances count as uses, too. Without @VERSION, all versions
are removed. If the newest is removed, the rules of the version before it apply. A version that comes from a file
of the home is removed with that file.

With --home, it asks the server that runs there, or opens the store itself if none is running.`,
		Example: "  troupe definition retire leave-request@2\n" +
			"  troupe definition retire --home /srv/troupe old-workflow",
	}
	at := connect.AddFlags(cmd)
	at.AddHome(cmd)
	connect.Complete(cmd, at)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		all, err := parseVersions(args)
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

func retireOne(out io.Writer, r version, retire func(id string, version uint64) ([]uint64, error)) error {
	gone, err := retire(r.workflow, r.number)
	if err != nil {
		return err
	}
	for _, version := range gone {
		if _, err := fmt.Fprintf(out, "%s@%d\n", r.workflow, version); err != nil {
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

func newStore() *cobra.Command {
	return cli.Group("store", "Manage the store of a home", "  troupe store backup --home ./troupe-home backup.tar.zst",
		slices.Concat(backup.Commands(), store.Commands(), []*cobra.Command{newStoreCreate()})...)
}

func newStoreCreate() *cobra.Command {
	c := config.New()
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Create an empty store in place of one that is lost for good",
		Long: `It never touches an existing store. The first start creates the store automatically. Later starts require
that same store, so that an unmounted disk is not mistaken for a new home.`,
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
			_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "%s now has an empty store\n", dir)
			return nil
		},
	}
	cmd.Flags().AddFlag(c.Flags.Lookup("home"))
	cmd.Flags().AddFlag(c.Flags.Lookup("shards"))
	return cmd
}
