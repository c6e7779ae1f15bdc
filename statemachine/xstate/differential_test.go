//go:build differential

package xstate

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"troupe/statemachine/xstate/internal/tree"
)

// randomMachines is how many machines each run draws, and eventsEach how many events each of them gets.
const (
	randomMachines = 200
	eventsEach     = 25
)

// TestDifferentialRandomMachines draws machines from fixed seeds, has the npm package xstate run them, and compares
// after each event. .ci/xstate installs the package and names the script in XSTATE_REACH.
func TestDifferentialRandomMachines(t *testing.T) {
	script := os.Getenv("XSTATE_REACH")
	if script == "" {
		t.Fatal("XSTATE_REACH names no script: .ci/xstate runs this test")
	}
	folder := t.TempDir()
	for seed := range uint64(randomMachines) {
		g := &generator{r: rand.New(rand.NewPCG(seed, 2))}
		machine, events := g.machine()
		write(t, filepath.Join(folder, fmt.Sprintf("m%03d.json", seed)), machine)
		write(t, filepath.Join(folder, fmt.Sprintf("m%03d.events.json", seed)), events)
	}
	if out, err := exec.Command("node", script, folder, folder).CombinedOutput(); err != nil {
		t.Fatalf("node: %v\n%.4000s", err, out)
	}
	moved := 0
	for seed := range uint64(randomMachines) {
		name := filepath.Join(folder, fmt.Sprintf("m%03d", seed))
		t.Run(filepath.Base(name), func(t *testing.T) { moved += replay(t, name) })
	}
	if moved < randomMachines*eventsEach/4 {
		t.Errorf("only %d events did anything: the machines are too dull", moved)
	}
}

func write(t *testing.T, file string, v any) {
	t.Helper()
	text, err := json.MarshalIndent(v, "", " ")
	if err == nil {
		err = os.WriteFile(file, text, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// replay plays an imported machine against its recording and returns how many events changed something.
func replay(t *testing.T, name string) (moved int) {
	file := imported(t, name)
	p := newPlay(t, file.Text)
	nodeOf := namesOf(t, load(t, name+".json"))
	before := ""
	for i, line := range recording(t, name) {
		p.take(line)
		if differences := p.compare(line, nodeOf); len(differences) > 0 {
			t.Fatalf("line %d: %s\n%s\n%s", i+2, strings.Join(differences, "\n"), brief(load(t, name+".json")), brief(load(t, name+".reached.json")))
		}
		if now := fmt.Sprint(line.Value, string(line.Context)); now != before {
			moved++
			before = now
		}
	}
	return moved
}

// brief cuts what would fill a log.
func brief(text []byte) []byte { return text[:min(len(text), 8000)] }

// generator draws a machine.
type generator struct {
	r      *rand.Rand
	states []*drawn
	marks  int
}

// drawn is a state of a drawn machine.
type drawn struct {
	id       string
	key      string
	config   map[string]any
	parent   *drawn
	children []*drawn
	kind     tree.Kind
}

func (g *generator) chance(percent int) bool { return g.r.IntN(100) < percent }

func pick[T any](g *generator, from []T) T { return from[g.r.IntN(len(from))] }

func (g *generator) machine() (config map[string]any, events []map[string]any) {
	root := g.state(nil, "m", 0)
	for _, s := range g.states {
		g.fill(s)
	}
	root.config["id"] = "m"
	root.config["context"] = map[string]any{"log": "", "n": 0}
	root.config["guards"] = map[string]any{"few": "svcPublic.n < 12", "even": "svcPublic.n == 0 || svcPublic.n == 2 || svcPublic.n == 4 || svcPublic.n == 6", "never": "false"}
	root.config["actions"] = map[string]any{
		"log":  map[string]any{"assign": map[string]any{"svcPublic.log": "${svcPublic.log + params.what}"}},
		"more": map[string]any{"assign": map[string]any{"svcPublic.n": "${svcPublic.n + 1}"}},
		"zero": map[string]any{"assign": map[string]any{"svcPublic.n": 0}},
	}
	for range eventsEach {
		switch e := g.r.IntN(10); {
		case e < 2:
			events = append(events, map[string]any{"wait": g.r.IntN(4) * 500})
		default:
			events = append(events, map[string]any{"send": pick(g, eventNames)})
		}
	}
	return root.config, events
}

var eventNames = []string{"A", "B", "C", "D.x", "D.y", "D"}

// state draws the shape of a state.
func (g *generator) state(parent *drawn, key string, depth int) *drawn {
	s := &drawn{key: key, config: map[string]any{}, parent: parent, kind: tree.Atomic}
	s.id = key
	if parent != nil {
		s.id = parent.id + "." + key
	}
	g.states = append(g.states, s)
	switch {
	case depth == 0 && g.chance(25), depth > 0 && depth < 3 && g.chance(20):
		s.kind = tree.Parallel
	case depth == 0, depth < 4 && g.chance(40):
		s.kind = tree.Compound
	case parent.kind == tree.Compound && len(parent.children) > 0 && g.chance(20):
		s.kind = tree.Final
	case len(parent.children) > 0 && g.chance(25):
		s.kind = tree.History
	}
	if s.kind != tree.Compound && s.kind != tree.Parallel {
		return s
	}
	for i := range 2 + g.r.IntN(2) {
		key := string(rune('a'+i)) + fmt.Sprint(len(g.states))
		if g.chance(20) {
			key = string(rune('a' + i)) // it may repeat
		}
		c := g.state(s, key, depth+1)
		s.children = append(s.children, c)
	}
	states := map[string]any{}
	for _, c := range s.children {
		states[c.key] = c.config
	}
	s.config["states"] = states
	return s
}

// fill draws what a state does.
func (g *generator) fill(s *drawn) {
	switch s.kind {
	case tree.History:
		s.config["type"] = "history"
		s.config["history"] = pick(g, []any{"shallow", "deep", true})
		if s.parent.kind == tree.Parallel || g.chance(40) {
			to := g.inside(s.parent)
			for g.kindOf(to) == tree.History {
				to = g.inside(s.parent)
			}
			s.config["target"] = to
		}
		return
	case tree.Parallel:
		s.config["type"] = "parallel"
	case tree.Compound:
		s.config["initial"] = s.children[0].key
		if g.chance(20) && (s.parent == nil || s.parent.kind != tree.Parallel) {
			s.config["initial"] = map[string]any{"target": s.children[0].key, "actions": g.log("=")}
		}
	}
	if s.kind == tree.Final {
		s.config["type"] = "final"
	}
	if g.chance(70) {
		s.config["entry"] = []any{g.log("+")}
	}
	if g.chance(60) {
		s.config["exit"] = []any{g.log("-")}
	}
	if s.kind == tree.Final {
		return
	}
	on := map[string]any{}
	for range g.r.IntN(4) {
		name := pick(g, []string{"A", "B", "C", "D", "D.x", "D.y", "D.*", "*", "R"})
		on[name] = g.transitions(s, name != "*" && name != "R")
	}
	if len(on) > 0 {
		s.config["on"] = on
	}
	if g.chance(15) && !s.isBeside() {
		s.config["always"] = []any{g.transition(s, false)}
	}
	if g.chance(15) {
		s.config["after"] = map[string]any{pick(g, []string{"500", "1000"}): []any{g.transition(s, true)}}
	}
	if (s.kind == tree.Compound || s.kind == tree.Parallel) && g.chance(50) {
		s.config["onDone"] = g.transitions(s, false)
	}
	if s.parent == nil { // troupe does not leave and enter the root of a machine
		delete(s.config, "entry")
		delete(s.config, "after")
		delete(s.config, "onDone")
	}
}

func (g *generator) log(what string) any {
	g.marks++
	return map[string]any{"type": "log", "params": map[string]any{"what": fmt.Sprintf("%s%d", what, g.marks)}}
}

func (g *generator) transitions(s *drawn, external bool) any {
	var list []any
	for range 1 + g.r.IntN(2) {
		list = append(list, g.transition(s, external))
	}
	return list
}

// transition draws a transition. One that an event of the machine itself may take counts, so that there is no circle
// without an end.
func (g *generator) transition(s *drawn, external bool) map[string]any {
	t := map[string]any{}
	if g.chance(75) {
		t["target"] = g.inside(g.states[0])
		if s.kind != tree.Atomic && g.chance(30) {
			t["target"] = g.inside(s)
		}
	}
	g.avoid(s, t)
	if s.parent != nil && (g.chance(25) || s.kind == tree.Atomic && t["target"] == "#"+s.id) {
		t["reenter"] = true
	}
	if !external {
		t["guard"] = "few"
		t["actions"] = []any{"more", g.log("!")}
		return t
	}
	switch g.r.IntN(8) {
	case 0:
		t["guard"] = "even"
	case 1:
		t["guard"] = map[string]any{"type": "not", "guards": []any{"even"}}
	case 2:
		t["guard"] = map[string]any{"type": "stateIn", "stateValue": g.inside(g.states[0])}
	case 3:
		t["guard"] = map[string]any{"type": "or", "guards": []any{"never", map[string]any{"type": "and", "guards": []any{"few", "even"}}}}
	}
	actions := []any{g.log("/")}
	switch g.r.IntN(6) {
	case 0:
		actions = append(actions, "zero")
	case 1:
		actions = append(actions, "more")
	case 2:
		if t["guard"] == nil {
			t["guard"] = "few"
			actions = append(actions, "more", map[string]any{"type": "xstate.raise", "params": map[string]any{"event": "R"}})
		}
	}
	t["actions"] = actions
	return t
}

// isBeside reports whether other states may be active beside s: XState takes their eventless transitions in the order in
// which the states were entered, and not in that of the document.
func (s *drawn) isBeside() bool {
	for p := s; p != nil; p = p.parent {
		if p.kind == tree.Parallel {
			return true
		}
	}
	return false
}

// avoid takes a target away with which XState comes to a configuration that is none, or enters a state that it has not
// left (MAPPING.md, "What is different").
func (g *generator) avoid(s *drawn, t map[string]any) {
	for _, to := range g.states {
		if "#"+to.id != t["target"] || to.kind != tree.History {
			continue
		}
		for p := s; p != nil; p = p.parent {
			if p == to.parent {
				delete(t, "target")
				return
			}
		}
	}
}

func (g *generator) kindOf(target string) tree.Kind {
	for _, s := range g.states {
		if "#"+s.id == target {
			return s.kind
		}
	}
	return ""
}

// inside is the id of a state inside s.
func (g *generator) inside(s *drawn) string {
	for {
		to := pick(g, g.states)
		for p := to.parent; p != nil; p = p.parent {
			if p == s {
				return "#" + to.id
			}
		}
	}
}
