package author

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"troupe/actors/simulation/script"
	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/homedir"
)

// The bounds of an exploration.
const (
	walksMax = 100_000
	stepsMax = 1_000
)

// exploring walks through the workflows and prints what it finds.
func (t *testCommand) exploring(cmd *cobra.Command) error {
	if min(t.walks.Walks, t.walks.Steps) < 1 || t.walks.Walks > walksMax || t.walks.Steps > stepsMax {
		return cli.Usagef("--walks must be 1 to %d, and --steps 1 to %d", walksMax, stepsMax)
	}
	if t.out.Form == formJUnit {
		return cli.Usagef("--output %s: --explore has %s and %s", formJUnit, cli.FormTable, cli.FormJSON)
	}
	set, err := homedir.Load(t.dir)
	if err != nil {
		return asFaulty(cmd, t.dir, err)
	}
	known, found := set.Known(), 0
	all, stopped, between := []*script.Explored{}, []string(nil), ""
	for _, workflow := range known.Workflows() {
		if !t.isMeant(workflow) {
			continue
		}
		of := script.Explore(known, workflow, t.walks)
		all, found = append(all, of), found+len(of.Findings)
		if of.Stopped != "" {
			stopped = append(stopped, workflow+" was not explored to the end: "+of.Stopped)
		}
		if t.out.Form == cli.FormJSON {
			continue
		}
		_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "%s: %s, %s, %s\n", workflow, cli.Plural(of.Walks, "walk"), cli.Plural(of.Steps, "step"), cli.Plural(len(of.Findings), "finding"))
		if len(of.Findings) > 0 {
			if _, err := fmt.Fprintf(t.out.To, "%s# Found in the workflow %s.\n%s", between, workflow, script.FileWith(workflow, of.Findings...)); err != nil {
				return err
			}
			between = "---\n"
		}
	}
	if len(all) == 0 {
		return cli.Usagef("--run: there is no workflow %q%s", t.run, cli.DidYouMean(t.run, known.Workflows()))
	}
	if t.out.Form == cli.FormJSON {
		if err := t.out.Marshaled(json.MarshalIndent(map[string]any{"workflows": all}, "", "  ")); err != nil {
			return err
		}
	}
	if found > 0 || len(stopped) > 0 {
		return errors.New(strings.Join(append(stopped, cli.Plural(found, "finding")), "; "))
	}
	return nil
}
