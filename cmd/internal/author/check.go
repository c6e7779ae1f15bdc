// Package author has the commands for those who write the text files of a home: check, init, new, test, publish, diagram,
// import, export, parameters and schema. Most of them need no server.
package author

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"troupe/actors/catalog"
	"troupe/actors/home"
	"troupe/actors/retention"
	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/config"
	"troupe/cmd/internal/connect"
	"troupe/cmd/internal/homedir"
	"troupe/cmd/internal/store"
	"troupe/gateway/admin"
	"troupe/gateway/api"
	"troupe/gateway/client"
	"troupe/persistence"
	"troupe/statemachine/document"
)

func newCheck() *cobra.Command {
	c := config.New()
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check the text files of a home",
		Long: `Prints all problems, and exits with 1 if there are any. If a server is running on the home, it is asked what it would
refuse: changed content of a version that has instances, or a workflow that was published individually.

It warns of a retention that would delete instances at once. It does not check what the store has: troupe doctor says
whether a server can open it, and troupe store verify checks everything in it.`,
		Example: "  troupe check --home ./troupe-home",
		RunE: func(cmd *cobra.Command, _ []string) error {
			faults, warnings, err := checkHome(c)
			if err != nil {
				return err
			}
			refused, said, asked, err := checkServer(cmd, c)
			if err != nil {
				return err
			}
			warnings = merge(warnings, said)
			faults = merge(faults, refused)
			for _, w := range warnings {
				_, _ = fmt.Fprintln(cmd.OutOrStdout(), "warning: "+w.Error())
			}
			for _, f := range faults {
				_, _ = fmt.Fprintln(cmd.OutOrStdout(), f.Error())
			}
			if len(faults) > 0 {
				return fmt.Errorf("%s in %s", cli.Plural(len(faults), "problem"), c.Home)
			}
			verdict := "OK"
			if !asked {
				verdict = "OK. No server is running, so version conflicts were not checked."
			}
			_, _ = fmt.Fprintln(cmd.ErrOrStderr(), verdict)
			return nil
		},
	}
	cmd.Flags().AddFlag(c.Flags.Lookup("home"))
	return cmd
}

func checkHome(c *config.Config) (all, warnings document.Faults, err error) {
	loadErr := c.Load()
	if err := homedir.Demand(c.Home); err != nil {
		return nil, nil, err
	}
	all = append(all, settingFaults(loadErr)...)
	if loadErr == nil {
		for _, err := range c.CheckParts() {
			all = append(all, settingFaults(err)...)
		}
	}
	if homedir.HasText(c.Home) { // NB: the home of a node need not have any
		set, err := homedir.Load(c.Home)
		if err := all.Take(err); err != nil {
			return nil, nil, err
		}
		if warnings = set.Warnings; loadErr == nil { // or it would warn of what is not there because of a fault
			warnings = append(warnings, c.WarnOfSending(set.Workflows)...)
		}
		warnings = append(warnings, warnOfDeletion(c, set.Workflows)...)
		if err == nil {
			_, err = home.LoadTests(os.DirFS(c.Home), set)
			if err := all.Take(err); err != nil {
				return nil, nil, err
			}
		}
	}
	all = append(all, checkStore(c)...)
	all.Sort()
	return all, warnings, nil
}

// checkStore returns why the server would not start on the store of the home.
func checkStore(c *config.Config) document.Faults {
	path := filepath.Join(c.Home, homedir.StoreIDFile)
	err := homedir.DemandFile(path)
	if err == nil {
		err = c.WithAdvice(persistence.CheckStoreID(homedir.Data(c.Home), path))
	}
	if err == nil {
		return nil
	}
	return document.Faults{{File: homedir.StoreIDFile, Reason: err.Error()}}
}

// warnOfDeletion looks into the store, if there is one and no server has it, which says so itself.
func warnOfDeletion(c *config.Config, set []catalog.Source) document.Faults {
	deletes := slices.ContainsFunc(set, func(s catalog.Source) bool { return s.Parsed.Retention > 0 })
	if !deletes || c.IsNode() || !homedir.Exists(homedir.Data(c.Home)) {
		return nil
	}
	open, end, err := store.OpenHome(c, false)
	var warnings document.Faults
	if err == nil {
		warnings, err = retention.Warn(open.Store, open.Catalog.Retentions(), set, time.Now())
		err = errors.Join(err, end())
	}
	if err != nil && !errors.Is(err, persistence.ErrLocked) {
		warnings = append(warnings, document.Fault{File: homedir.DataFolder, Reason: "what a retention would delete was not counted: " + err.Error()})
	}
	return warnings
}

// checkServer returns what the server that runs on the home would refuse, if there is one, and what else it says.
func checkServer(cmd *cobra.Command, c *config.Config) (faults, warnings document.Faults, asked bool, err error) {
	client, err := homedir.Dial(cmd.Context(), c.Home)
	if errors.Is(err, admin.ErrNoServer) {
		return nil, nil, false, nil
	}
	if err == nil {
		faults, warnings, err = client.Check(cmd.Context())
	}
	if errors.Is(err, admin.ErrUnknownRequest) {
		_, _ = fmt.Fprintln(cmd.ErrOrStderr(), "the running server has another version and cannot say what it would refuse")
		return nil, nil, true, nil
	}
	return faults, warnings, true, err
}

func merge(faults, more document.Faults) document.Faults {
	for _, f := range more {
		if !slices.ContainsFunc(faults, func(g document.Fault) bool { return f.File == g.File && f.Line == g.Line && f.Reason == g.Reason }) {
			faults = append(faults, f)
		}
	}
	faults.Sort()
	return faults
}

func settingFaults(err error) (faults document.Faults) {
	switch of := err.(type) { //nolint:errorlint // what a wrapper says in front must stay
	case nil:
	case document.Faults:
		return of
	case interface{ Unwrap() []error }:
		for _, part := range of.Unwrap() {
			faults = append(faults, settingFaults(part)...)
		}
	default:
		for line := range strings.SplitSeq(err.Error(), "\n") { // joined below a wrapper
			faults = append(faults, document.Fault{File: "settings", Reason: line})
		}
	}
	return faults
}

// Commands are those for who writes the text files of a home.
func Commands() []*cobra.Command {
	return []*cobra.Command{newCheck(), newInit(), newNew(), newTest(), newSimulate(), newPublish(), newDiagram(), newImport(), newExport(), newParameters(), newSchema()}
}

func newPublish() *cobra.Command {
	c := config.New()
	dryRun := false
	cmd := &cobra.Command{
		Use:   "publish [DIR]",
		Short: "Publish the text files of a home to its cluster",
		Long: `Publishes identity.yaml, rights.yaml, and the workflows, forms and checklists with the files they refer to. All are
checked together: if there are problems, they are printed, nothing is changed and the exit code is 1. Otherwise all
nodes use the new files within a second. DIR defaults to --home.

Only clusters need this. A single server applies changed files automatically, and 'troupe check' says whether it will.

It asks the node that runs on --home, or the service of --address or --context with the token of a holder of mod-admin.`,
		Example: "  troupe publish --home /srv/troupe\n" +
			"  troupe publish --dry-run --context production ./home-in-git",
	}
	cmd.Flags().AddFlag(c.Flags.Lookup("home"))
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only check the files, here and on the server")
	connection := connect.AddFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		dir := c.Home
		if len(args) > 0 {
			dir = args[0]
		}
		archive, warnings, err := packHome(dir)
		var published api.PublishedHome
		if err == nil {
			published, err = publishArchive(cmd.Context(), c, connection, archive, dryRun)
			warnings = merge(warnings, connect.FaultsOf(published.Warnings))
		}
		if dryRun && isNotANode(err) {
			_, err = fmt.Fprintln(cmd.OutOrStdout(), "OK; "+api.NotANode)
			return err
		}
		return showPublished(cmd, dir, published, warnings, dryRun, err)
	}
	return cmd
}

func packHome(dir string) (archive []byte, warnings document.Faults, err error) {
	if !homedir.HasText(dir) {
		return nil, nil, fmt.Errorf("no text files to publish in %s: it has no %s; give their folder: troupe publish DIR", dir, home.IdentityFile)
	}
	set, err := homedir.Load(dir)
	if err != nil {
		return nil, set.Warnings, err
	}
	archive, err = set.Pack()
	return archive, set.Warnings, err
}

// publishArchive asks the service that the flags name, else the node on the home.
func publishArchive(ctx context.Context, c *config.Config, to *connect.Connection, archive []byte, dryRun bool) (api.PublishedHome, error) {
	if to.Address != "" || to.Context != "" || to.TokenFile != "" {
		service, err := to.Client(0)
		if err != nil {
			return api.PublishedHome{}, err
		}
		defer service.Close()
		published, err := service.PublishHome(ctx, archive, dryRun)
		if refused := (*client.Error)(nil); errors.As(err, &refused) && len(refused.Faults) > 0 {
			return published, connect.FaultsOf(refused.Faults)
		}
		return published, connect.Explain(err)
	}
	node, err := connect.Dial(ctx, c.Home)
	if err != nil {
		return api.PublishedHome{}, fmt.Errorf("%w, or name a service with --address or --context", err)
	}
	ctx, cancel := context.WithTimeout(ctx, to.Timeout)
	defer cancel()
	return node.Publish(ctx, archive, dryRun)
}

func isNotANode(err error) bool { return err != nil && strings.Contains(err.Error(), api.NotANode) }

func showPublished(cmd *cobra.Command, dir string, published api.PublishedHome, warnings document.Faults, dryRun bool, err error) error {
	out := cmd.OutOrStdout()
	for _, w := range warnings {
		_, _ = fmt.Fprintln(out, "warning: "+w.Error())
	}
	if faults := (document.Faults{}); errors.As(err, &faults) {
		for _, f := range faults {
			_, _ = fmt.Fprintln(out, f.Error())
		}
		return fmt.Errorf("%s in %s; nothing was published", cli.Plural(len(faults), "problem"), dir)
	}
	if err != nil {
		return err
	}
	what := fmt.Sprintf("%s, %s and %s", cli.Plural(published.Workflows, "workflow"), cli.Plural(published.Templates, "template"), cli.Plural(published.Users, "user"))
	if dryRun {
		_, err = fmt.Fprintln(out, "OK: "+what+" would be in use")
	} else {
		_, err = fmt.Fprintln(out, "in use now: "+what)
	}
	return err
}
