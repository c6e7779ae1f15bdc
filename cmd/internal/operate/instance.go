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
	"troupe/gateway/api"
	"troupe/gateway/client"
	"troupe/persistence"
	"troupe/statemachine"
	"troupe/statemachine/document"
)

func newInstance() *cobra.Command {
	return cli.Group("instance", "List, show, create, move and watch instances of a running service",
		"  troupe instance create leave-request --public '{\"from\": \"2026-12-21\"}'\n"+
			"  troupe instance list leave-request --filter '{\"states.nodeId\": \"review\"}'",
		newInstanceList(), newInstanceShow(), newInstanceCreate(), newInstanceSend(),
		newInstanceHistory(), newInstanceActivity(), newInstanceComment(), newInstancePending(), newInstanceWatch(), newInstanceEvents(), newInstanceMigrate(), newInstanceStop())
}

// Commands are those that work with what runs.
func Commands() []*cobra.Command {
	return []*cobra.Command{newInstance(), newTask(), newOutbox(), newIncident(), newTimer(), newSchedule(), newDefinition(), newStore()}
}

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

func newInstanceMigrate() *cobra.Command {
	var file, filter string
	dryRun, limit := false, 0
	cmd := &cobra.Command{
		Use:   "migrate WORKFLOW",
		Short: "Give running instances another version of their workflow (needs mod-workflows)",
		Long: "Give running instances another version of their workflow. The plan says from which\n" +
			"version to which, and which nodes have other names there (statemachine/DEFINITION.md,\n" +
			"\"Migration\"). Each instance is one commit with one entry in its history. An instance\n" +
			"that has no place in the new version is refused and stays as it is; then exit 1. What\n" +
			"was interrupted is done by the same command again. A plan with assign is for owners of\n" +
			"the workflow and holders of mod-admin.",
		Example: "  troupe instance migrate invoice-approval --plan plan.yaml --dry-run\n" +
			"  troupe instance migrate invoice-approval --plan plan.yaml --filter '{\"states.nodeId\": \"review\"}'",
	}
	cmd.Flags().StringVar(&file, "plan", "", "file with the plan, in YAML or JSON")
	cmd.Flags().StringVar(&filter, "filter", "", "only instances that match, a JSON object")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "change nothing, and say what would be done")
	cmd.Flags().IntVar(&limit, "limit", 1000, "instances of one request, 1 to 1000")
	return operating(cmd, []string{cli.FormTable, cli.FormJSON}, func(cmd *cobra.Command, c *client.Client, out *cli.Output, args []string) error {
		request := &api.MigrationRequest{DryRun: dryRun, Limit: limit}
		switch {
		case file == "":
			return cli.Usagef("--plan is missing: a file that says from which version to which")
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
				err = fmt.Errorf("%w (%s migrated before; the same command goes on)", err, cli.Plural(total.Migrated, "instance"))
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
