package operate

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/connect"
	"troupe/gateway/client"
)

// asking makes cmd a command that asks the service: it gets flags for the connection and the output, and explains
// errors.
func asking(cmd *cobra.Command, forms []string, do doing) *cobra.Command {
	return askingAt(cmd, connect.AddFlags(cmd), forms, do)
}

type doing = func(cmd *cobra.Command, c *client.Client, out *cli.Output, args []string) error

// operating is asking for those who run the service, who may ask it over the socket in its home.
func operating(cmd *cobra.Command, forms []string, do doing) *cobra.Command {
	at := connect.AddFlags(cmd)
	at.AddHome(cmd)
	return askingAt(cmd, at, forms, do)
}

func askingAt(cmd *cobra.Command, at *connect.Connection, forms []string, do doing) *cobra.Command {
	out := &cli.Output{}
	if len(forms) > 0 {
		out = cli.AddOutput(cmd, forms...)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := at.Client(repetitions(cmd))
		if err != nil {
			return err
		}
		defer c.Close()
		return connect.Explain(hinted(cmd, c, args, do(cmd, c, out, args)))
	}
	connect.Complete(cmd, at)
	return cmd
}

func each(args []string, do func(arg string) error) error {
	var faults []error
	for _, arg := range args {
		faults = append(faults, do(arg))
	}
	return errors.Join(faults...)
}

// Who sends a file waits until --timeout rather than begin again.
func repetitions(cmd *cobra.Command) int {
	if cmd.Flags().Changed("file") {
		return math.MaxInt32
	}
	return 0
}

// hinted adds what was probably meant to the refusal of a name: it asks the service for workflows or events.
func hinted(cmd *cobra.Command, c *client.Client, args []string, err error) error {
	var refused *client.Error
	if !errors.As(err, &refused) {
		return err
	}
	names := strings.Fields(cmd.Use)[1:]
	of := func(name string) string {
		if i := slices.Index(names, name); i >= 0 && i < len(args) {
			return args[i]
		}
		return ""
	}
	workflow, event := of("WORKFLOW"), of("EVENT")
	if workflow == "" {
		workflow = of("[WORKFLOW]")
	}
	meant := ""
	switch {
	case workflow == "":
	case refused.Status == http.StatusNotFound:
		meant = cli.DidYouMean(workflow, connect.WorkflowsKnown(cmd.Context(), c))
	case event != "" && slices.Contains([]int{http.StatusBadRequest, http.StatusForbidden, http.StatusConflict}, refused.Status) && !connect.IsDeclared(cmd.Context(), c, workflow, of("INSTANCE"), event):
		meant = cli.DidYouMean(event, connect.EventsKnown(cmd.Context(), c, workflow, of("INSTANCE")))
	}
	if meant == "" {
		return err
	}
	return fmt.Errorf("%w%s", err, meant)
}
