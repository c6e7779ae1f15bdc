package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"troupe/actors/catalog"
	"troupe/actors/home"
	"troupe/gateway/admin"
	"troupe/gateway/client"
	"troupe/statemachine"
)

func newExport() *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use:   "export WORKFLOW",
		Short: "Write a definition in the format of another tool to standard output",
		Long: "Write the current version of a definition in the format of another tool: " + foreignNames() + ".\n" +
			"Asks the service, which needs mod-workflows; with --home the service that runs on it, or the\n" +
			"text files of the home when none does. What the other tool will not see is said on\n" +
			"standard error; troupe import reads it again.",
		Example: "  troupe export leave-request --to scxml > leave-request.scxml",
		Args:    arguments,
	}
	at := addConnection(cmd)
	at.addHome(cmd)
	cmd.Flags().StringVar(&to, "to", "", "the format: "+foreignNames())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if to == "" {
			return usageError{errors.New("--to is missing: the format, " + foreignNames())}
		}
		format, err := foreignNamed(to)
		if err != nil {
			return err
		}
		file, text, err := definitionText(cmd, at, args[0])
		if err != nil {
			return explained(err)
		}
		out, notes, err := format.exports(file, text)
		if err != nil {
			return err
		}
		for _, note := range notes {
			_, _ = fmt.Fprintln(cmd.ErrOrStderr(), "note: "+client.Printable(note.Error()))
		}
		_, err = cmd.OutOrStdout().Write(out)
		return err
	}
	return cmd
}

// definitionText returns the current version of a workflow: of the service, or of the files of a home without one.
func definitionText(cmd *cobra.Command, at *connection, workflow string) (file string, text []byte, err error) {
	if at.home != "" && at.address == "" && at.context == "" && at.tokenFile == "" {
		ctx, cancel := context.WithTimeout(cmd.Context(), askMax)
		defer cancel()
		if _, err := admin.Dial(ctx, filepath.Join(at.home, adminSocket)); errors.Is(err, admin.ErrNoServer) {
			return definitionFile(at.home, workflow)
		}
	}
	c, err := at.client(0)
	if err != nil {
		return "", nil, err
	}
	defer c.Close()
	d, err := c.Definition(cmd.Context(), workflow)
	return d.File, []byte(d.Text), err
}

// definitionFile returns the file of a home that has the highest version of a workflow.
func definitionFile(dir, workflow string) (file string, text []byte, err error) {
	if err := wantHome(dir); err != nil {
		return "", nil, err
	}
	parser, err := statemachine.NewParser(statemachine.ParserOptions{})
	if err != nil {
		return "", nil, err
	}
	set, faults := home.LoadDefinitions(os.DirFS(dir), parser, nil)
	var newest *catalog.Source
	for i := range set.Workflows {
		if s := &set.Workflows[i]; string(s.Parsed.ID) == workflow && (newest == nil || s.Parsed.Version > newest.Parsed.Version) {
			newest = s
		}
	}
	if newest != nil {
		return newest.File, newest.Text, nil
	}
	if faults != nil {
		return "", nil, fmt.Errorf("no file of %s has the workflow %s, and some have faults:\n%w", dir, workflow, faults)
	}
	return "", nil, fmt.Errorf("no file of %s has the workflow %s, and no server is running there", dir, workflow)
}
