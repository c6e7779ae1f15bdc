package author

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/connect"
	"troupe/cmd/internal/homedir"
	"troupe/gateway/api"
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
	}
	at := connect.AddFlags(cmd)
	at.AddHome(cmd)
	connect.Complete(cmd, at)
	cmd.Flags().StringVar(&to, "to", "", "the format: "+foreignNames())
	cli.CompleteFlag(cmd, "to", func() (known []string) {
		for _, f := range foreigns {
			known = append(known, f.name)
		}
		return known
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if to == "" {
			return cli.Usage(errors.New("--to is missing: the format, " + foreignNames()))
		}
		format, err := foreignNamed(to)
		if err != nil {
			return err
		}
		source, err := definitionText(cmd.Context(), at, args[0])
		if err != nil {
			return connect.Explain(err)
		}
		out, notes, err := format.exports(source)
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

func definitionText(ctx context.Context, at *connect.Connection, workflow string) (statemachine.Source, error) {
	if at.Home != "" && at.Address == "" && at.Context == "" && at.TokenFile == "" && !homedir.IsServed(ctx, at.Home) {
		s, err := sourceInHome(at.Home, workflow, 0)
		if err != nil {
			return statemachine.Source{}, err
		}
		return statemachine.Source{File: s.File, Text: s.Text, Read: readFrom(s.Refs)}, nil
	}
	c, err := at.Client(0)
	if err != nil {
		return statemachine.Source{}, err
	}
	defer c.Close()
	d, err := c.Definition(ctx, workflow, 0)
	if err != nil {
		return statemachine.Source{}, adviseDefinition(connect.SuggestWorkflow(ctx, c, workflow, err), workflow)
	}
	return sourceOf(d), nil
}

func sourceOf(d *api.Definition) statemachine.Source {
	return statemachine.Source{File: d.File, Text: []byte(d.Text), Read: readFrom(d.Refs)}
}

func readFrom[T ~string | ~[]byte](refs map[string]T) func(name string) ([]byte, error) {
	return func(name string) ([]byte, error) {
		text, ok := refs[name]
		if !ok {
			return nil, os.ErrNotExist
		}
		return []byte(text), nil
	}
}
