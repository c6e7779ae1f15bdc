package scxml_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"troupe/statemachine"
	"troupe/statemachine/data"
	"troupe/statemachine/scxml"
)

// suitesVariable names the folder of the published suites: the folder test of the npm package @scion-scxml/test-framework. .ci/suites
// fetches it; without it TestSuites is skipped.
const suitesVariable = "TROUPE_SCXML_SUITES"

// TestSuites runs every file of the suites through Import and the state machine, on a clock of its own. testdata/suites.txt names those
// that do not pass, each with its reason; a file that is not there must pass, and one that is must not.
func TestSuites(t *testing.T) {
	folder := os.Getenv(suitesVariable)
	if folder == "" {
		t.Skipf("%s is not set: .ci/suites runs this test", suitesVariable)
	}
	reasons := readReasons(t)
	passed, of := map[string]int{}, map[string]int{}
	err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		script, isTest := strings.CutSuffix(path, ".scxml")
		if err != nil || !isTest {
			return err
		}
		rel, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		suite := "SCION"
		if strings.HasPrefix(rel, "w3c-ecma") {
			suite = "W3C"
		}
		if suite == "W3C" && strings.Contains(rel, "sub") {
			return nil // a document that others invoke
		}
		failed := playFile(path, script+".json")
		if of[suite]++; failed == nil {
			passed[suite]++
		}
		reason, listed := reasons[filepath.ToSlash(rel)]
		delete(reasons, filepath.ToSlash(rel))
		switch {
		case failed != nil && !listed:
			t.Errorf("%s: %v", rel, failed)
		case failed == nil && listed:
			t.Errorf("%s passes: take it from the list (%s)", rel, reason)
		}
		return nil
	})
	require.NoError(t, err)
	for file := range reasons {
		t.Errorf("%s is on the list and not in the suites", file)
	}
	for suite, n := range of {
		t.Logf("%s: %d of %d passed", suite, passed[suite], n)
	}
}

func readReasons(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("testdata/suites.txt")
	require.NoError(t, err)
	reasons := map[string]string{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		file, reason, ok := strings.Cut(line, ": ")
		require.True(t, ok && reasons[file] == "", "testdata/suites.txt: %q is not a file and a reason, or stands twice", line)
		reasons[file] = reason
	}
	return reasons
}

type suiteScript struct {
	InitialConfiguration []string
	Events               []struct {
		After float64 // ms
		Event struct {
			Name string
			Data json.RawMessage
		}
		NextConfiguration []string
	}
}

func playFile(file, script string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	files, err := scxml.Import(filepath.Base(file), text, beside(filepath.Dir(file)))
	if err != nil {
		return err
	}
	if err := playFiles(files, file, script); err != nil {
		return err
	}
	again, err := exportedAndImported(files)
	if err == nil {
		err = playFiles(again, file, script)
	}
	if err != nil {
		return fmt.Errorf("exported and imported again: %w", err)
	}
	return nil
}

func exportedAndImported(files []scxml.File) (again []scxml.File, err error) {
	for _, f := range files {
		x, err := scxml.Export(f.ID+".yaml", f.Text)
		if err != nil {
			return nil, err
		}
		of, err := scxml.Import(f.ID+".scxml", x.Text, nil)
		if err != nil {
			return nil, err
		}
		if len(of) != 1 || of[0].ID != f.ID {
			return nil, fmt.Errorf("%d definitions came back, the first is %s, want %s", len(of), of[0].ID, f.ID)
		}
		again = append(again, of[0])
	}
	return again, nil
}

func playFiles(files []scxml.File, file, script string) error {
	st, err := newStage(files)
	if err != nil {
		return err
	}
	st.load = beside(filepath.Dir(file))
	if strings.Contains(file, "w3c-ecma") {
		return st.playVerdict(files[0].ID)
	}
	b, err := os.ReadFile(script)
	if err != nil {
		return err
	}
	var s suiteScript
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("script: %w", err)
	}
	return st.play(files[0].ID, &s)
}

// playVerdict plays a document of the W3C, which says itself whether it passes: it ends in its state pass. Without such a state a person
// has to look at what it writes, and it ends in final.
func (s *stage) playVerdict(id string) error {
	const longest = time.Minute
	main, err := s.create(s.definitions[id], statemachine.Creation{ID: "main", Caller: &statemachine.Caller{ID: "john"}})
	if err == nil {
		err = s.settle(s.now.Add(longest))
	}
	if err != nil {
		return err
	}
	if err := main.isIn([]string{"pass"}); err != nil && main.isIn([]string{"final"}) != nil {
		return err
	}
	return nil
}

// beside reads the files of a folder. The suites have .txml.scxml where the documents say .scxml.
func beside(folder string) func(name string) ([]byte, error) {
	return func(name string) ([]byte, error) {
		for _, try := range []string{name, strings.Replace(name, ".scxml", ".txml.scxml", 1), strings.Replace(name, ".scxml", ".txml", 1)} {
			if b, err := os.ReadFile(filepath.Join(folder, filepath.Base(try))); err == nil {
				return b, nil
			}
		}
		return nil, fs.ErrNotExist
	}
}

// stage runs instances beside each other on one clock, and carries what they tell each other.
type stage struct {
	definitions map[string]*statemachine.Definition
	actors      []*actor
	now         time.Time
	letters     []func() error // on the way, in order
	load        func(name string) ([]byte, error)
	log         []string
}

type actor struct {
	id       string
	d        *statemachine.Definition
	in       statemachine.Instance
	parent   *actor
	part     statemachine.ElementID // how the parent calls it
	children map[statemachine.ElementID]*actor
}

func newStage(files []scxml.File) (*stage, error) {
	parser, err := statemachine.NewParser(statemachine.ParserOptions{})
	if err != nil {
		return nil, err
	}
	s := &stage{definitions: map[string]*statemachine.Definition{}, now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	for _, f := range files {
		d, err := parser.Parse(statemachine.Source{File: f.ID + ".yaml", Text: f.Text})
		if err != nil {
			return nil, fmt.Errorf("the definition is refused: %w\n%s", err, f.Text)
		}
		s.definitions[f.ID] = d.Definition
	}
	return s, nil
}

func (s *stage) play(id string, script *suiteScript) error {
	main, err := s.create(s.definitions[id], statemachine.Creation{ID: "main", Caller: &statemachine.Caller{ID: "john"}})
	if err == nil {
		err = s.settle(s.now)
	}
	if err != nil {
		return err
	}
	if err := main.isIn(script.InitialConfiguration); err != nil {
		return fmt.Errorf("at the beginning: %w", err)
	}
	for n, e := range script.Events {
		if err := s.settle(s.now.Add(time.Duration(e.After * float64(time.Millisecond)))); err != nil {
			return err
		}
		v, err := data.Clean(e.Event.Data)
		if len(e.Event.Data) == 0 {
			v, err = nil, nil
		}
		if err != nil {
			return err
		}
		r, err := main.d.Step(&main.in, statemachine.Event{
			Name: statemachine.EventName(e.Event.Name), Data: v, Caller: &statemachine.Caller{ID: "john"}, Now: s.now,
		})
		if err = s.take(main, r, err); err == nil {
			err = s.settle(s.now)
		}
		if err != nil {
			return err
		}
		if err := main.isIn(e.NextConfiguration); err != nil {
			return fmt.Errorf("after event %d (%s): %w", n+1, e.Event.Name, err)
		}
	}
	return nil
}

func (s *stage) create(d *statemachine.Definition, c statemachine.Creation) (*actor, error) {
	a := &actor{id: c.ID, d: d, children: map[statemachine.ElementID]*actor{}}
	c.Now = s.now
	s.actors = append(s.actors, a)
	r, err := d.Create(c)
	return a, s.take(a, r, err)
}

// take takes over what a step has made. Errors that mean that nothing happened are none here.
func (s *stage) take(a *actor, r statemachine.Result, err error) error {
	for _, known := range []error{statemachine.ErrUnknownEvent, statemachine.ErrNoChild, statemachine.ErrEnded} {
		if errors.Is(err, known) {
			return nil
		}
	}
	if err != nil {
		return err
	}
	// NB: through its stored form, which must hold everything.
	record, err := statemachine.ParseRecord(a.d.AppendRecord(nil, &r.Instance, statemachine.Chain{}, nil))
	if err == nil {
		a.in, err = a.d.Restore(r.Instance.ID, record)
	}
	if err != nil {
		return err
	}
	s.log = append(s.log, r.Logs...)
	for n, out := range r.Deliveries {
		s.send(a, out, statemachine.ElementID{Sequence: r.Instance.Sequence, Number: uint32(n)}) //nolint:gosec // few
	}
	return nil
}

func (s *stage) send(from *actor, out statemachine.Delivery, mark statemachine.ElementID) {
	s.letters = append(s.letters, func() error {
		switch {
		case out.Start != nil:
			return s.start(from, out.Start)
		case out.End != nil:
			if child := from.children[out.End.ID]; child != nil {
				r, err := child.d.Cancel(&child.in, "", s.now)
				return s.take(child, r, err)
			}
		case out.Notice != nil:
			news := append(append(data.Value(`{"workflowId":"w","instanceId":"i","output":`), out.Notice.Output...), '}')
			r, err := from.parent.d.Callback(&from.parent.in, from.part, out.Notice.Failed, news, s.now)
			return s.take(from.parent, r, err)
		case out.Forward != nil:
			return s.forward(from, out.Forward, mark)
		}
		return nil
	})
}

func (s *stage) start(from *actor, start *statemachine.ChildStart) error {
	d := s.definition(start.Workflow)
	if d == nil {
		r, err := from.d.Callback(&from.in, start.ID, true, data.Value(`{"message":"there is no such workflow"}`), s.now)
		return s.take(from, r, err)
	}
	id := fmt.Sprintf("%s-%d-%d", from.id, start.ID.Sequence, start.ID.Number)
	a := &actor{id: id, d: d, parent: from, part: start.ID, children: map[statemachine.ElementID]*actor{}}
	from.children[start.ID] = a
	s.actors = append(s.actors, a)
	r, err := d.Create(statemachine.Creation{
		ID: id, Public: start.Public, Private: start.Private, Internal: true, Now: s.now,
		Parent: &statemachine.Parent{Workflow: string(from.d.ID), Instance: from.id, Child: start.ID, Depth: start.Depth},
	})
	return s.take(a, r, err)
}

// definition is that of a workflow, or of a document beside the one that is played.
func (s *stage) definition(id string) *statemachine.Definition {
	if d := s.definitions[id]; d != nil || s.load == nil {
		return d
	}
	text, err := s.load(id + ".scxml")
	if err != nil {
		return nil
	}
	files, err := scxml.Import(id+".scxml", text, nil)
	if err != nil {
		return nil
	}
	other, err := newStage(files)
	if err != nil {
		return nil
	}
	for id, d := range other.definitions {
		s.definitions[id] = d
	}
	return s.definitions[id]
}

func (s *stage) forward(from *actor, f *statemachine.Forward, mark statemachine.ElementID) error {
	h := statemachine.Heard{Event: f.Event, Data: f.Data, SendID: f.SendID, From: mark}
	to := from.parent
	if f.Parent != nil {
		h.Child = &from.part
	} else if to = from.children[f.Child.ID]; to == nil {
		return nil
	}
	r, err := to.d.Hear(&to.in, h, s.now)
	return s.take(to, r, err)
}

const stageSteps = 10_000

// settle carries messages and fires timers until nothing is due any more.
func (s *stage) settle(until time.Time) error {
	for range stageSteps {
		if len(s.letters) > 0 {
			next := s.letters[0]
			s.letters = s.letters[1:]
			if err := next(); err != nil {
				return err
			}
			continue
		}
		of, timer, ok := s.nextTimer()
		if !ok || timer.Due.After(until) {
			s.now = until
			return nil
		}
		if timer.Due.After(s.now) {
			s.now = timer.Due
		}
		r, err := of.d.Fire(&of.in, timer.ID, s.now)
		if err := s.take(of, r, err); err != nil {
			return err
		}
	}
	return errors.New("it does not come to rest")
}

func (s *stage) nextTimer() (of *actor, first statemachine.Timer, ok bool) {
	for _, a := range s.actors {
		for _, t := range a.in.Timers() {
			if !ok || t.Due.Before(first.Due) || of == a && t.Due.Equal(first.Due) &&
				cmp.Or(cmp.Compare(t.ID.Sequence, first.ID.Sequence), cmp.Compare(t.ID.Number, first.ID.Number)) < 0 {
				of, first, ok = a, t, true
			}
		}
	}
	return of, first, ok
}

func (a *actor) isIn(want []string) error {
	positions := a.d.Positions(&a.in)
	var got []string
	for i, p := range positions {
		if i+1 < len(positions) && a.d.IsParallel(p) {
			continue
		}
		got = append(got, string(p.Node))
	}
	want = slices.Sorted(slices.Values(want))
	if slices.Sort(got); !slices.Equal(got, want) {
		return fmt.Errorf("got %v, want %v", got, want)
	}
	return nil
}
