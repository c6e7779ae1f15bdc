package statemachine_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"troupe/statemachine"
	"troupe/statemachine/data"
)

// TestScenario plays the scripts in testdata/scenario, one situation a file:
//
//	define                      the definition that the rest of the file uses
//	create user=… roles=…       svcPublic and svcPrivate as the input
//	send EVENT user=… roles=…   event.data as the input
//
// Every step also goes through the stored form: what is written and read again
// must behave as the instance that stayed in memory.
func TestScenario(t *testing.T) {
	datadriven.Walk(t, "testdata/scenario", func(t *testing.T, path string) {
		s := &scenario{t: t, file: filepath.Base(path), now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
		datadriven.RunTest(t, path, s.run)
	})
}

type scenario struct {
	t    *testing.T
	file string
	d    *statemachine.Definition
	in   statemachine.Instance
	now  time.Time
}

func (s *scenario) run(t *testing.T, cmd *datadriven.TestData) string {
	s.now = s.now.Add(time.Second)
	if s.d == nil && cmd.Cmd != "define" {
		return "no definition\n"
	}
	switch cmd.Cmd {
	case "define":
		parser, err := statemachine.NewParser(statemachine.ParserOptions{})
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := parser.Parse(statemachine.Source{File: "workflow.yaml", Text: []byte(cmd.Input)})
		if err != nil {
			s.d = nil
			return err.Error() + "\n"
		}
		s.d = parsed.Definition
		return fmt.Sprintf("%s version %d\n", s.d.ID, s.d.Version)
	case "create":
		body := clean(t, cmd.Input)
		public, _ := body.Lookup("svcPublic")
		private, _ := body.Lookup("svcPrivate")
		return s.show(s.d.Create(statemachine.Creation{
			ID: "01ARZ3NDEKTSV4RRFFQ69G5FAV", Caller: caller(cmd), Public: public, Private: private, Now: s.now,
		}))
	case "send":
		before := fingerprint(s.d, &s.in)
		result, err := s.d.Step(&s.in, statemachine.Event{
			Name: statemachine.EventName(cmd.CmdArgs[0].Key), Data: clean(t, cmd.Input), Caller: caller(cmd), Now: s.now,
		})
		if after := fingerprint(s.d, &s.in); after != before {
			t.Fatalf("Step changed its argument:\n got %q\nwant %q", after, before)
		}
		return s.show(result, err)
	}
	t.Fatalf("unknown command %q", cmd.Cmd)
	return ""
}

func clean(t *testing.T, text string) data.Value {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	v, err := data.Clean([]byte(text))
	if err != nil {
		t.Fatalf("input %s: %v", text, err)
	}
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

// show prints what happened and takes the result over, through its stored form.
func (s *scenario) show(r statemachine.Result, err error) string {
	if err != nil {
		for _, known := range []error{
			statemachine.ErrUnknownEvent, statemachine.ErrInvalidData, statemachine.ErrNotSettable, statemachine.ErrForbidden,
			statemachine.ErrRejected, statemachine.ErrExecution, statemachine.ErrTooLarge,
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
	if s.d.IsDone(&r.Instance) {
		b.WriteString("done\n")
	}
	s.in = restored(s.t, s.d, &r.Instance)
	return b.String()
}

func fingerprint(d *statemachine.Definition, in *statemachine.Instance) string {
	return string(d.AppendRecord(nil, in, statemachine.Chain{}, nil))
}

// restored writes the instance and reads it again; both must be the same.
func restored(t *testing.T, d *statemachine.Definition, in *statemachine.Instance) statemachine.Instance {
	t.Helper()
	stored := fingerprint(d, in)
	record, err := statemachine.ParseRecord([]byte(stored))
	if err != nil {
		t.Fatalf("parse stored record: %v", err)
	}
	again, err := d.Restore(in.ID, record)
	if err != nil {
		t.Fatalf("restore: %v", err)
	}
	if got := fingerprint(d, &again); got != stored {
		t.Fatalf("stored form changed by reading it:\n got %q\nwant %q", got, stored)
	}
	return again
}
