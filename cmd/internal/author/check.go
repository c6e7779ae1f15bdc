// Package author has the commands for those who write the text files of a home: check, init, new, publish, diagram,
// import, export, parameters and schema. Most of them need no server.
package author

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/config"
	"troupe/cmd/internal/homedir"
	"troupe/gateway/admin"
	"troupe/persistence"
	"troupe/statemachine/document"
)

func newCheck() *cobra.Command {
	c := config.New()
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check every text file of a home; prints all faults and exits 1 if there are any",
		Long: "Check every text file of a home; prints all faults and exits 1 if there are any.\n" +
			"When a server is running on the home, also what it would refuse is a fault: other\n" +
			"content under a version that has instances, and a workflow that is published by itself.",
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
				return fmt.Errorf("%s in %s", cli.Plural(len(faults), "fault"), c.Home)
			}
			verdict := "no faults"
			if !asked {
				verdict = "no faults in the files; no server is running here, so it was not checked whether instances use a version that changed, or whether a workflow is published by itself already"
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
		all = append(all, checkParts(c)...)
	}
	if homedir.HasText(c.Home) { // NB: the home of a node need not have any
		set, err := homedir.Load(c.Home)
		if err := all.Take(err); err != nil {
			return nil, nil, err
		}
		if warnings = set.Warnings; loadErr == nil { // or it would warn of what is not there because of a fault
			warnings = append(warnings, c.WarnOfSending(set.Workflows)...)
		}
	}
	all = append(all, checkStore(c)...)
	all.Sort()
	return all, warnings, nil
}

func checkParts(c *config.Config) document.Faults {
	_, gatewayErr := c.NewGateway(zerolog.Nop())
	_, providerErr := c.NewProvider(nil, zerolog.Nop())
	_, bucketErr := c.NewBucket(zerolog.Nop())
	_, senderErr := c.NewSender(nil)
	return slices.Concat(settingFaults(gatewayErr), settingFaults(providerErr), settingFaults(bucketErr), settingFaults(senderErr),
		settingFaults(c.Store.EnsureDefaults().Validate()))
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
		_, _ = fmt.Fprintln(cmd.ErrOrStderr(), "the running server is of another version and does not say what it would refuse")
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
	return []*cobra.Command{newCheck(), newInit(), newNew(), newPublish(), newDiagram(), newImport(), newExport(), newParameters(), newSchema()}
}
