package author

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"troupe/actors/home"
	"troupe/actors/simulation/script"
	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/homedir"
	"troupe/statemachine"
	"troupe/statemachine/document"
)

func newSimulate() *cobra.Command {
	var out *cli.Output
	cmd := &cobra.Command{
		Use:   "simulate FILE",
		Short: "Try a workflow out, step by step",
		Long: `Reads steps from standard input, one a line, and shows after each what the instance is like then: its states, data and
tasks, what each user who was named can send, and what comes or leaves. Steps are those of tests (troupe test), such as

  {as: john.doe, create: {}}
  {as: john.doe, send: submit, data: {days: 9}}
  {advance: P2D}

FILE is a file in the folder workflows of a home, whose users there are. Nothing is kept, and no server is needed. It ends
at the end of its input. What a step has wrong is told, and the next one can be given; the exit code is 2 then.`,
		Example: "  troupe simulate troupe-home/workflows/leave-request.yaml\n" +
			"  troupe simulate troupe-home/workflows/leave-request.yaml -o json < steps",
	}
	out = cli.AddOutput(cmd, cli.FormTable, cli.FormJSON)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		file, err := filepath.Abs(args[0])
		if err != nil {
			return err
		}
		dir := filepath.Dir(filepath.Dir(file))
		if !homedir.HasText(dir) {
			return cli.Usagef("%s is not in the folder workflows of a home", args[0])
		}
		text, err := os.ReadFile(args[0])
		if err != nil {
			return err
		}
		set, err := homedir.Load(dir)
		if err != nil {
			return asFaulty(cmd, dir, err)
		}
		root, err := document.Parse(args[0], text)
		if err != nil {
			return asFaulty(cmd, dir, err)
		}
		workflow := root.Field("id").Text
		for i := range set.Workflows { // the text of FILE, whatever versions the home has beside
			if of := set.Workflows[i]; filepath.Base(of.File) == filepath.Base(args[0]) {
				return simulate(cmd, out, script.NewKnown(set.Directory, ownAlone(set, i)), workflow)
			}
		}
		return cli.Usagef("%s is not a workflow of the home", args[0])
	}
	return cmd
}

// ownAlone are the definitions of a home, of the workflow of one alone that one.
func ownAlone(set *home.Set, own int) (all []*statemachine.Definition) {
	for i := range set.Workflows {
		if of := set.Workflows[i].Parsed; i == own || of.ID != set.Workflows[own].Parsed.ID {
			all = append(all, of)
		}
	}
	return all
}

func simulate(cmd *cobra.Command, out *cli.Output, known *script.Known, workflow string) error {
	d, lines, wrong := script.NewDialogue(known, workflow, time.Now()), bufio.NewScanner(cmd.InOrStdin()), 0
	for n := 1; lines.Scan(); n++ {
		if strings.TrimSpace(lines.Text()) == "" {
			continue
		}
		steps, err := script.ParseSteps("input", []byte(strings.Repeat("\n", n-1)+"- "+lines.Text()), workflow, "", known)
		if err != nil {
			wrong++
			_, _ = fmt.Fprintln(cmd.ErrOrStderr(), err)
			continue
		}
		for i := range steps {
			shown := d.Do(&steps[i])
			if out.Form == cli.FormJSON {
				err = out.Line(shown)
			} else {
				err = tellStep(cmd.OutOrStdout(), shown)
			}
			if err != nil {
				return err
			}
		}
	}
	if err := lines.Err(); err != nil || wrong == 0 {
		return err
	}
	return cli.Faulty(fmt.Errorf("%s wrong", cli.Plural(wrong, "line")))
}

// tellStep writes what a step has come to in some lines.
func tellStep(w io.Writer, shown []byte) error {
	var step struct {
		State struct {
			Public json.RawMessage `json:"svcPublic"`
			States []struct{ StateMachineID, NodeID string }
		}
		Tasks []struct {
			Title string
			For   []string
		}
		Events map[string][]string
		Timers []struct{ Event, Due string }
		Jobs   []struct {
			Job, Message string
			Attempts     int
			Failed       bool
		}
		Sent []struct {
			Webhook, Subject string
			Mail             []string
			Body             json.RawMessage
		}
		Error *struct {
			Status  int
			Message string
		}
	}
	if err := json.Unmarshal(shown, &step); err != nil {
		return err
	}
	var out strings.Builder
	put := func(what, format string, args ...any) {
		fmt.Fprintf(&out, "  %-8s "+format+"\n", append([]any{what}, args...)...)
	}
	if e := step.Error; e != nil {
		fmt.Fprintf(&out, "refused with %d: %s\n", e.Status, e.Message)
	}
	for _, s := range step.State.States {
		fmt.Fprintf(&out, "%s: %s\n", s.StateMachineID, s.NodeID)
	}
	if len(step.State.Public) > 0 {
		put("data", "%s", step.State.Public)
	}
	for _, t := range step.Tasks {
		put("task", "%s (%s)", t.Title, strings.Join(t.For, ", "))
	}
	for _, user := range slices.Sorted(maps.Keys(step.Events)) {
		if events := step.Events[user]; len(events) > 0 {
			put("events", "%s: %s", user, strings.Join(events, ", "))
		}
	}
	for _, t := range step.Timers {
		put("timer", "%s at %s", t.Event, t.Due)
	}
	for _, j := range step.Jobs {
		text := j.Job
		if j.Failed {
			text += " failed"
		}
		if j.Attempts > 0 {
			text += fmt.Sprintf(" (%s: %s)", cli.Plural(j.Attempts, "failed attempt"), j.Message)
		}
		put("job", "%s", text)
	}
	for _, s := range step.Sent {
		if s.Webhook != "" {
			put("sent", "webhook %s %s", s.Webhook, s.Body)
			continue
		}
		put("sent", "mail to %s: %s", strings.Join(s.Mail, ", "), s.Subject)
	}
	_, err := io.WriteString(w, out.String())
	return err
}
