package diagram

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/statemachine"
	"troupe/statemachine/data"
)

var rewrite = flag.Bool("redraw", false, "write the pictures of testdata anew")

// gallery are charts that show each feature, with the events of an instance that is drawn, too. An event is
// "user: name data"; that of a timer is "timer: name".
var gallery = []struct {
	file      string
	events    []string
	languages []string
}{
	{"../../cmd/troupe/example/workflows/leave-request.yaml", []string{`john: submit {"days":5}`}, nil},
	{"../../cmd/troupe/example/workflows/purchase-order.yaml", []string{
		`john: submit {"items":[{"name":"chair","quantity":2,"price":60}]}`, `service: supplier.accepted {"body":{}}`,
	}, nil},
	{"testdata/nested.yaml", []string{`john: assign`, `john: accept`, `john: found`, `john: test`, `john: fail`, `john: elsewhere`, `john: return`}, nil},
	{"testdata/parallel.yaml", []string{`john: invite`, `john: talk`, `john: like`, `timer: after.P7D.asked`, `john: answer`}, nil},
	{"testdata/history.yaml", []string{`john: on`, `john: play`, `john: tick`, `john: pause`, `john: resume`}, nil},
	{"testdata/guards.yaml", nil, nil},
	{"testdata/regions.yaml", []string{`john: both`, `john: swap`}, nil},
	{"testdata/labels.yaml", []string{`john: submit`, `john: ask`, `john: refuse`}, []string{"de-AT", "en"}},
}

func parseFile(t *testing.T, file string) *statemachine.Definition {
	t.Helper()
	parser, err := statemachine.NewParser(statemachine.ParserOptions{})
	require.NoError(t, err)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	parsed, err := parser.Parse(statemachine.Source{File: file, Text: text})
	require.NoError(t, err)
	return parsed.Definition
}

func play(t *testing.T, d *statemachine.Definition, events []string) *Instance {
	t.Helper()
	now := time.Date(2026, 11, 26, 9, 0, 0, 0, time.UTC)
	caller := func(user string) *statemachine.Caller {
		return &statemachine.Caller{ID: user, Roles: []string{"employee", "manager", "purchasing"}}
	}
	r, err := d.Create(statemachine.Creation{ID: "1", Caller: caller("john"), Now: now})
	require.NoError(t, err)
	in := &Instance{ID: "01M7ZKVJ24JBV2NZ80FMN3JCQS"}
	add := func() {
		in.Add(Step{Event: r.Entry.Event, Start: d.PositionsNamed(r.Entry.Start), End: d.PositionsNamed(r.Entry.End)})
		in.At = d.Positions(&r.Instance)
	}
	add()
	for _, line := range events {
		user, rest, _ := strings.Cut(line, ": ")
		name, text, _ := strings.Cut(rest, " ")
		state := r.Instance
		switch user {
		case "service":
			r, err = d.Receive(&state, statemachine.EventName(name), data.Value(text), now)
		case "timer":
			timers := state.Timers()
			k := slices.IndexFunc(timers, func(of statemachine.Timer) bool { return string(of.Event) == name })
			require.GreaterOrEqual(t, k, 0, "%s: there are only %v", line, timers)
			r, err = d.Fire(&state, timers[k].ID, now.Add(1000*time.Hour))
		default:
			e := statemachine.Event{Name: statemachine.EventName(name), Caller: caller(user), Now: now}
			if text != "" {
				e.Data = data.Value(text)
			}
			r, err = d.Step(&state, e)
		}
		require.True(t, err == nil && r.Outcome == statemachine.Moved, "%s: got outcome %v, %v", line, r.Outcome, err)
		add()
	}
	return in
}

// TestPictures compares the pictures of the gallery with those of testdata. With -redraw it writes them; then look at
// them before you commit them.
func TestPictures(t *testing.T) {
	for _, of := range gallery {
		name := strings.TrimSuffix(filepath.Base(of.file), ".yaml")
		t.Run(name, func(t *testing.T) {
			d := parseFile(t, of.file)
			p := &Picture{Chart: d.Chart()}
			compare(t, name, p)
			if of.events != nil {
				compare(t, name+"-instance", &Picture{Chart: p.Chart, Instance: play(t, d, of.events), Languages: of.languages})
			}
		})
	}
}

// TestPictureOfCounts has how many instances stand where.
func TestPictureOfCounts(t *testing.T) {
	d := parseFile(t, "testdata/parallel.yaml")
	p := &Picture{Chart: d.Chart(), Counts: map[int]Count{}}
	for k, s := range d.LeafNodes() {
		if i, ok := p.Chart.Node(s.Position); ok && k%2 == 0 {
			p.Counts[i] = Count{int64(k * k * 1234), k > 4, k > 6}
		}
	}
	compare(t, "parallel-counts", p)
}

func TestCountsAreRead(t *testing.T) {
	for want, c := range map[string]Count{
		"0": {}, "999": {Instances: 999}, "1,000": {Instances: 1000}, "12,345,678": {Instances: 12_345_678},
		"about 99": {99, true, false}, "about 78,000": {78_499, true, false}, "about 79,000": {78_500, true, false}, "about 1,000": {999, true, false}, "over 78,000": {78_999, true, true},
	} {
		assert.Equal(t, want, english.count(c), c)
		assert.Equal(t, strings.NewReplacer("about", "etwa", "over", "über", ",", ".").Replace(want), german.count(c), c)
	}
}

func compare(t *testing.T, name string, p *Picture) {
	t.Helper()
	for _, of := range []struct {
		suffix string
		got    []byte
	}{{".svg", p.SVG()}, {".mmd", p.Mermaid()}, {".dot", p.DOT()}} {
		file := filepath.Join("testdata", name+of.suffix)
		if *rewrite {
			require.NoError(t, os.WriteFile(file, of.got, 0o644))
			continue
		}
		want, err := os.ReadFile(file)
		require.NoError(t, err)
		if !bytes.Equal(of.got, want) {
			t.Errorf("%s is another picture now:\n%s\nrun go test with -redraw, and look at it", file, firstDifference(of.got, want))
		}
	}
}

func firstDifference(got, want []byte) string {
	a, b := strings.Split(string(got), "\n"), strings.Split(string(want), "\n")
	for i := range a {
		if i >= len(b) || a[i] != b[i] {
			return fmt.Sprintf("line %d: got %s\nwant %s", i+1, a[i], append(b, make([]string, len(a))...)[i])
		}
	}
	return fmt.Sprintf("got %d lines, want %d", len(a), len(b))
}
