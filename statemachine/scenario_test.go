package statemachine_test

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"troupe/statemachine"
	"troupe/statemachine/data"
	"troupe/statemachine/internal/markdown"
)

// TestScenario plays the scripts in testdata/scenario, one situation a file:
//
//	define                      the definition that the rest of the file uses; with stored, one that was accepted before; without a
//	                            text the complete example of DEFINITION.md
//	create user=… roles=…       svcPublic and svcPrivate as the input
//	send EVENT user=… roles=…   event.data as the input; most=… bounds the MiB that it takes
//	wait DURATION               every timer that is due by then, in order
//	told SEQUENCE.NUMBER done   what has become of a child, or failed; its data as the input
//	cancel                      the parent has left the node that had invoked the instance
//	create parent=DEPTH …       by a parent
//	migrate user=…              to another version that was defined; the plan as the input
//	reset to=N user=…           to what it was after an entry; the reason as the input
//	tasks user=… roles=…        what waits, and what of it the caller may take over and do
//	assign SEQUENCE.NUMBER USER somebody has a task; without USER nobody
//	hear SEQUENCE.NUMBER EVENT from=SEQUENCE.NUMBER   an event of a child, or of the parent; its data as the input
//
// and those in testdata/bound. ⟨text⟩{n} is n times the text, and what is long is shown cut.
//
// Every step also goes through the stored form: what is written and read again
// must behave as the instance that stayed in memory.
func TestScenario(t *testing.T) {
	for _, folder := range []string{"testdata/scenario", "testdata/bound"} {
		datadriven.Walk(t, folder, func(t *testing.T, path string) {
			s := &scenario{t: t, file: filepath.Base(path), now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
			datadriven.RunTest(t, path, func(t *testing.T, cmd *datadriven.TestData) string {
				cmd.Input = statemachine.Expand(cmd.Input)
				return shortened(s.run(t, cmd))
			})
		})
	}
}

type scenario struct {
	t    *testing.T
	file string
	// versions are all that were defined; d is that of the instance.
	versions map[uint64]*statemachine.Definition
	d        *statemachine.Definition
	in       statemachine.Instance
	was      map[uint64]statemachine.Instance // after each entry
	shown    statemachine.Instance            // as jobs were shown last
	now      time.Time
}

func (s *scenario) run(t *testing.T, cmd *datadriven.TestData) string {
	s.now = s.now.Add(time.Second)
	if s.d == nil && cmd.Cmd != "define" {
		return "no definition\n"
	}
	switch cmd.Cmd {
	case "define":
		parser, err := statemachine.NewParser(statemachine.ParserOptions{Stored: cmd.HasArg("stored")})
		require.NoError(t, err)
		source := statemachine.Source{File: "workflow.yaml", Text: []byte(cmd.Input)}
		if cmd.Input == "" {
			source = completeExample(t)
		}
		parsed, err := parser.Parse(source)
		if err != nil {
			s.d = nil
			return err.Error() + "\n"
		}
		if s.d = parsed.Definition; s.versions == nil {
			s.versions = map[uint64]*statemachine.Definition{}
		}
		s.versions[s.d.Version] = s.d
		return fmt.Sprintf("%s version %d\n", s.d.ID, s.d.Version)
	case "create":
		body := clean(t, cmd.Input)
		public, _ := body.Lookup("svcPublic")
		private, _ := body.Lookup("svcPrivate")
		s.shown = statemachine.Instance{}
		c := statemachine.Creation{ID: "01ARZ3NDEKTSV4RRFFQ69G5FAV", Caller: caller(cmd), Public: public, Private: private, Now: s.now}
		if cmd.HasArg("parent") {
			c.Caller, c.Internal, c.Parent = nil, true, &statemachine.Parent{Workflow: "above", Instance: "01ARZ3NDEKTSV4RRFFQ69G5FAA", Child: statemachine.ElementID{Sequence: 7, Number: 1}}
			cmd.ScanArgs(t, "parent", &c.Parent.Depth)
		}
		return s.show(s.d.Create(c))
	case "keys":
		var out strings.Builder
		for line := range strings.SplitSeq(cmd.Input, "\n") {
			if key, err := s.d.KeyOf(clean(t, line)); err != nil {
				fmt.Fprintln(&out, err)
			} else {
				fmt.Fprintf(&out, "%q\n", key)
			}
		}
		return out.String()
	case "send":
		before, most := fingerprint(s.d, &s.in), uint64(200)
		cmd.MaybeScanArgs(t, "most", &most)
		event := statemachine.Event{Name: statemachine.EventName(cmd.CmdArgs[0].Key), Data: clean(t, cmd.Input), Caller: caller(cmd), Now: s.now}
		var memory, after runtime.MemStats
		runtime.ReadMemStats(&memory)
		result, err := s.d.Step(&s.in, event)
		runtime.ReadMemStats(&after)
		require.LessOrEqual(t, after.TotalAlloc-memory.TotalAlloc, most<<20, "%s: bytes allocated", cmd.Pos)
		require.Equal(t, before, fingerprint(s.d, &s.in), "Step changed its argument")
		return s.show(result, err)
	}
	switch cmd.Cmd {
	case "wait":
		return s.wait(cmd.CmdArgs[0].Key)
	case "migrate":
		return s.migrate(cmd)
	case "reset":
		to := uint64(0)
		cmd.ScanArgs(t, "to", &to)
		then := s.was[to]
		return s.show(s.d.Reset(&s.in, statemachine.Reset{Then: &then, To: to, Reason: cmd.Input, Caller: caller(cmd), Now: s.now}))
	case "tasks":
		return s.tasks(caller(cmd))
	case "assign":
		to := ""
		if len(cmd.CmdArgs) > 1 {
			to = cmd.CmdArgs[1].Key
		}
		next, err := s.d.Assign(&s.in, part(t, cmd.CmdArgs[0].Key), to)
		if err != nil {
			return err.Error() + "\n"
		}
		s.in = restored(t, s.d, &next)
		return "assigned\n"
	case "cancel":
		return s.show(s.d.Cancel(&s.in, "", s.now))
	case "hear":
		h := statemachine.Heard{Event: statemachine.EventName(cmd.CmdArgs[1].Key), Data: clean(t, cmd.Input), From: part(t, cmd.CmdArgs[2].Vals[0])}
		if cmd.CmdArgs[0].Key != "parent" {
			id := part(t, cmd.CmdArgs[0].Key)
			h.Child = &id
		}
		return s.show(s.d.Hear(&s.in, h, s.now))
	case "told":
		id := part(t, cmd.CmdArgs[0].Key)
		failed := cmd.CmdArgs[1].Key == "failed"
		r, err := s.d.Callback(&s.in, id, failed, clean(t, cmd.Input), s.now)
		if errors.Is(err, statemachine.ErrExecution) {
			s.in, err = s.d.FailCallback(&s.in, id, failed, clean(t, cmd.Input), s.now)
			require.NoError(t, err)
			s.in = restored(t, s.d, &s.in)
			return fmt.Sprintf("incident %v\n%s", s.in.Timers(), s.jobs())
		}
		return s.show(r, err)
	case "retry": // the incident of a timer
		id, ok := s.in.FailedJob(s.in.Timers()[0].ID)
		require.True(t, ok, "the incident is that of a job")
		s.in, ok = s.in.RetryJob(id)
		require.True(t, ok, "the job has failed")
		s.in = restored(t, s.d, &s.in)
		return fmt.Sprintf("%v\n%s", s.in.Timers(), s.jobs())
	}
	t.Fatalf("unknown command %q", cmd.Cmd)
	return ""
}

func completeExample(t *testing.T) statemachine.Source {
	text, err := os.ReadFile("DEFINITION.md")
	require.NoError(t, err)
	section := markdown.Section(string(text), "A complete example")
	beside := func(string) ([]byte, error) { return []byte(markdown.Blocks(section, "json")[0]), nil }
	return statemachine.Source{File: "workflow.yaml", Text: []byte(markdown.Blocks(section, "yaml")[0]), Read: beside}
}

func (s *scenario) tasks(c *statemachine.Caller) string {
	var b strings.Builder
	available := statemachine.View{Instance: &s.in, Of: s.d}.Available(c, s.now)
	for _, t := range s.in.Tasks() {
		text, named := statemachine.View{Instance: &s.in, Of: s.d}.TaskText(&t), s.d.Candidates(t.At)
		fmt.Fprintf(&b, "%d.%d %s %s priority %d: %s", t.ID.Sequence, t.ID.Number, t.At.Machine, t.At.Node, t.Priority, text.Title)
		if len(text.Description) > 0 {
			fmt.Fprintf(&b, " (%s)", text.Description)
		}
		if !t.Due.IsZero() {
			fmt.Fprintf(&b, " due %s", t.Due.Format(statemachine.TimeLayout))
		}
		if t.Form != "" {
			fmt.Fprintf(&b, " form %s", t.Form)
		}
		fmt.Fprintf(&b, " for %v", named)
		if t.Assignee != "" {
			fmt.Fprintf(&b, " assigned to %s", t.Assignee)
		}
		if (statemachine.View{Instance: &s.in, Of: s.d}).IsCandidate(&t, c, s.now) {
			b.WriteString(" candidate")
		}
		for _, a := range statemachine.TaskEvents(&t, available) {
			fmt.Fprintf(&b, " %s", a.Name)
		}
		b.WriteByte('\n')
	}
	if b.Len() == 0 {
		return "none\n"
	}
	return b.String()
}

func (s *scenario) migrate(cmd *datadriven.TestData) string {
	parser, err := statemachine.NewParser(statemachine.ParserOptions{})
	require.NoError(s.t, err)
	plan, err := parser.ParsePlan("plan.yaml", []byte(cmd.Input), func(number uint64) (*statemachine.Definition, error) {
		if d := s.versions[number]; d != nil {
			return d, nil
		}
		return nil, errors.New("there is no such version")
	})
	if err != nil {
		return err.Error() + "\n"
	}
	s.d = s.versions[plan.From()] // another one was defined since
	before := fingerprint(s.d, &s.in)
	result, err := plan.Migrate(&s.in, caller(cmd), s.now)
	require.Equal(s.t, before, fingerprint(s.d, &s.in), "Migrate changed its argument")
	if err == nil {
		s.d = plan.Target()
	}
	return s.show(result, err)
}

func (s *scenario) wait(text string) string {
	d, err := time.ParseDuration(text)
	require.NoError(s.t, err)
	var out strings.Builder
	for until := s.now.Add(d); ; {
		next := slices.MinFunc(append(s.in.Timers(), statemachine.Timer{Due: until.Add(1)}), func(a, b statemachine.Timer) int {
			return cmp.Or(a.Due.Compare(b.Due), cmp.Compare(a.ID.Sequence, b.ID.Sequence), cmp.Compare(a.ID.Number, b.ID.Number))
		})
		if next.Due.After(until) {
			s.now = until
			break
		}
		s.now = later(s.now, next.Due)
		before := fingerprint(s.d, &s.in)
		r, err := s.d.Fire(&s.in, next.ID, s.now)
		require.Equal(s.t, before, fingerprint(s.d, &s.in), "Fire changed its argument")
		out.WriteString(s.show(r, err))
		if err != nil {
			s.in, err = s.d.Drop(&s.in, next.ID)
			require.NoError(s.t, err)
		}
	}
	if out.Len() == 0 {
		return "nothing\n"
	}
	return out.String()
}

// shortened cuts long lines, and counts those that come again and again.
func shortened(text string) string {
	var out strings.Builder
	lines := strings.SplitAfter(text, "\n")
	for i := 0; i < len(lines); i++ {
		line, times := lines[i], 1
		for ; i+1 < len(lines) && len(lines) > 100 && lines[i+1] == line; i++ {
			times++
		}
		if len(line) > 1000 {
			line = fmt.Sprintf("%.60s…%q of %d bytes\n", line, line[len(line)-12:], len(line))
		}
		if out.WriteString(line); times > 1 {
			fmt.Fprintf(&out, "%d times\n", times)
		}
	}
	return out.String()
}

func part(t *testing.T, text string) (id statemachine.ElementID) {
	_, err := fmt.Sscanf(text, "%d.%d", &id.Sequence, &id.Number)
	require.NoError(t, err)
	return id
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func clean(t *testing.T, text string) data.Value {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	v, err := data.Clean([]byte(text))
	require.NoError(t, err, "input %s", text)
	return v
}

func caller(cmd *datadriven.TestData) *statemachine.Caller {
	c := &statemachine.Caller{ID: "john"}
	for _, a := range cmd.CmdArgs {
		switch a.Key {
		case "user":
			c.ID = a.Vals[0]
		case "roles":
			c.Roles = a.Vals
		case "privileges":
			c.Privileges = a.Vals
		}
	}
	return c
}

func (s *scenario) show(r statemachine.Result, err error) string {
	if err != nil {
		for _, known := range []error{
			statemachine.ErrUnknownEvent, statemachine.ErrInvalidData, statemachine.ErrNotSettable, statemachine.ErrForbidden,
			statemachine.ErrRejected, statemachine.ErrExecution, statemachine.ErrTooLarge, statemachine.ErrEnded, statemachine.ErrNoChild,
			statemachine.ErrNotMigrated, statemachine.ErrClaimed,
		} {
			if errors.Is(err, known) {
				return err.Error() + "\n"
			}
		}
		s.t.Fatalf("error of no known kind: %v", err)
	}
	var b strings.Builder
	if r.Outcome == statemachine.Ignored {
		b.WriteString("ignored\n")
	} else {
		b.Write(r.Entry.AppendJSON(nil))
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "states %s\n", s.d.States(&r.Instance))
	fmt.Fprintf(&b, "public %s private %s\n", r.Instance.Public, r.Instance.Private)
	if r.Instance.Redirect != "" {
		fmt.Fprintf(&b, "redirect %s\n", r.Instance.Redirect)
	}
	for _, line := range r.Logs {
		fmt.Fprintf(&b, "log %s\n", line)
	}
	for _, out := range r.Deliveries {
		switch {
		case out.Webhook != "":
			fmt.Fprintf(&b, "webhook %s %s\n", out.Webhook, out.Body)
		case out.Start != nil:
			fmt.Fprintf(&b, "start %d.%d %s version %d public %s private %s depth %d\n", out.Start.ID.Sequence, out.Start.ID.Number, out.Start.Workflow, out.Start.Version, out.Start.Public, out.Start.Private, out.Start.Depth)
		case out.End != nil:
			fmt.Fprintf(&b, "end %d.%d %s\n", out.End.ID.Sequence, out.End.ID.Number, out.End.Workflow)
		case out.Notice != nil:
			fmt.Fprintf(&b, "tell %s/%s about %d.%d: failed %t, output %s\n", out.Notice.Parent.Workflow, out.Notice.Parent.Instance, out.Notice.Parent.Child.Sequence, out.Notice.Parent.Child.Number, out.Notice.Failed, out.Notice.Output)
		case out.Forward != nil && out.Forward.Parent != nil:
			fmt.Fprintf(&b, "to the parent %s %s\n", out.Forward.Event, out.Forward.Data)
		case out.Forward != nil:
			fmt.Fprintf(&b, "to the child %d.%d of %s: %s %s\n", out.Forward.Child.ID.Sequence, out.Forward.Child.ID.Number, out.Forward.Child.Workflow, out.Forward.Event, out.Forward.Data)
		default:
			fmt.Fprintf(&b, "mail to %s: %s: %q\n", strings.Join(out.To, ", "), out.Subject, out.Text)
		}
	}
	for _, t := range r.Decided {
		fmt.Fprintf(&b, "decided %d.%d %s\n", t.ID.Sequence, t.ID.Number, t.At.Node)
	}
	for _, c := range r.Instance.Children() {
		fmt.Fprintf(&b, "child %d.%d %s %s\n", c.ID.Sequence, c.ID.Number, c.Workflow, c.Status)
	}
	for _, timer := range r.Instance.Timers() {
		fmt.Fprintf(&b, "timer %d.%d %s at %s\n", timer.ID.Sequence, timer.ID.Number, timer.Event, timer.Due.Format(statemachine.TimeLayout))
	}
	s.in = restored(s.t, s.d, &r.Instance)
	if s.in.Sequence == 1 {
		s.was = map[uint64]statemachine.Instance{}
	}
	s.was[s.in.Sequence] = s.in
	if len(r.Entry.Data) > 0 && r.Entry.Event == statemachine.ResetEvent {
		fmt.Fprintf(&b, "data %s\n", r.Entry.Data)
	}
	b.WriteString(s.jobs())
	if r.Instance.IsEnded() {
		b.WriteString("ended\n")
	}
	if s.d.IsDone(&r.Instance) {
		b.WriteString("done\n")
	}
	return b.String()
}

// jobs are those that the instance waits for, with what has changed in them since they were shown last.
func (s *scenario) jobs() string {
	var b strings.Builder
	ended, begun := s.in.JobChanges(&s.shown)
	s.shown = s.in
	for _, j := range ended {
		fmt.Fprintf(&b, "job %s %s leaves\n", j.ID, j.Type)
	}
	for _, j := range begun {
		fmt.Fprintf(&b, "job %s %s comes\n", j.ID, j.Type)
	}
	for _, j := range s.in.Jobs() {
		fmt.Fprintf(&b, "job %s %s of %s priority %d data %s failed %t\n", j.ID, j.Type, j.At.Node, j.Priority, j.Data, j.Failed)
	}
	return b.String()
}

func fingerprint(d *statemachine.Definition, in *statemachine.Instance) string {
	return string(d.AppendRecord(nil, in, statemachine.Chain{}, nil))
}

func restored(t *testing.T, d *statemachine.Definition, in *statemachine.Instance) statemachine.Instance {
	t.Helper()
	stored := fingerprint(d, in)
	record, err := statemachine.ParseRecord([]byte(stored))
	require.NoError(t, err, "parse stored record")
	require.Equal(t, in.IsEnded(), record.IsEnded(), "the record of an instance that has ended")
	again, err := d.Restore(in.ID, record)
	require.NoError(t, err, "restore")
	require.Equal(t, stored, fingerprint(d, &again), "stored form changed by reading")
	return again
}
