package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"troupe/actors/home"
	"troupe/gateway/admin"
	"troupe/persistence"
	"troupe/statemachine"
	"troupe/statemachine/document"
)

func newCheck() *cobra.Command {
	c := newConfig()
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check every text file of a home; prints all faults and exits 1 if there are any",
		Long: "Check every text file of a home; prints all faults and exits 1 if there are any.\n" +
			"When a server is running on the home, also what it would refuse is a fault: other\n" +
			"content under a version that has instances, and a workflow that is published by itself.",
		Example: "  troupe check --home ./troupe-home",
		Args:    arguments,
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
				return fmt.Errorf("%s in %s", plural(len(faults), "fault"), c.home)
			}
			verdict := "no faults"
			if !asked {
				verdict = "no faults in the files; no server is running here, so it was not checked whether instances use a version that changed, or whether a workflow is published by itself already"
			}
			_, _ = fmt.Fprintln(cmd.ErrOrStderr(), verdict)
			return nil
		},
	}
	cmd.Flags().AddFlag(c.flags.Lookup("home"))
	return cmd
}

// checkHome returns the faults of all text files together, and the warnings.
func checkHome(c *config) (all, warnings document.Faults, err error) {
	loadErr := c.load()
	if err := wantHome(c.home); err != nil {
		return nil, nil, err
	}
	all = append(all, settingFaults(loadErr)...)
	if loadErr == nil {
		all = append(all, checkParts(c)...)
	}
	if hasText(c.home) { // NB: the home of a node need not have any
		parser, err := statemachine.NewParser(statemachine.ParserOptions{})
		if err != nil {
			return nil, nil, err
		}
		set, err := home.Load(os.DirFS(c.home), parser)
		if err := keepFaults(&all, err); err != nil {
			return nil, nil, err
		}
		if warnings = set.Warnings; loadErr == nil { // or it would warn of what is not there because of a fault
			warnings = append(warnings, c.warnOfSending(set.Workflows)...)
		}
	}
	all = append(all, checkStore(c)...)
	all.Sort()
	return all, warnings, nil
}

// checkParts returns why parts of the server could not be made with the settings.
func checkParts(c *config) document.Faults {
	_, gatewayErr := c.newGateway(zerolog.Nop())
	_, providerErr := c.newProvider(nil, zerolog.Nop())
	_, bucketErr := c.newBucket(zerolog.Nop())
	_, senderErr := c.newSender(nil)
	return slices.Concat(settingFaults(gatewayErr), settingFaults(providerErr), settingFaults(bucketErr), settingFaults(senderErr),
		settingFaults(c.store.EnsureDefaults().Validate()))
}

// checkStore returns why the server would not start on the store of the home. The
// store is not opened: that a server has it open does not matter.
func checkStore(c *config) document.Faults {
	path := filepath.Join(c.home, storeIDFile)
	err := wantFile(path)
	if err == nil {
		err = withAdvice(c, persistence.CheckStoreID(filepath.Join(c.home, dataFolder), path))
	}
	if err == nil {
		return nil
	}
	return document.Faults{{File: storeIDFile, Reason: err.Error()}}
}

// plural counts things whose name takes an s.
func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// checkServer returns what the server that runs on the home would refuse, and what else it
// says. asked: there is one.
func checkServer(cmd *cobra.Command, c *config) (faults, warnings document.Faults, asked bool, err error) {
	client, err := admin.Dial(cmd.Context(), filepath.Join(c.home, adminSocket))
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

// merge adds the faults of more that are not in faults yet.
func merge(faults, more document.Faults) document.Faults {
	for _, f := range more {
		if !slices.ContainsFunc(faults, func(g document.Fault) bool { return f.File == g.File && f.Line == g.Line && f.Reason == g.Reason }) {
			faults = append(faults, f)
		}
	}
	faults.Sort()
	return faults
}

// settingFaults are the faults of settings, from whatever source.
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

// keepFaults moves the faults in err to all; what is no fault is returned.
func keepFaults(all *document.Faults, err error) error {
	var faults document.Faults
	if errors.As(err, &faults) {
		*all = append(*all, faults...)
		return nil
	}
	return err
}
