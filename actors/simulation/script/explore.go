package script

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"

	"troupe/actors/failure"
	"troupe/statemachine"
	"troupe/statemachine/document"
)

// Exploration says how walks go through a workflow at random.
type Exploration struct {
	Walks, Steps int // how many, and the most steps of each
	Seed         uint64
}

// Explored is what the walks have come to.
type Explored struct {
	Workflow string     `json:"workflow"`
	Walks    int        `json:"walks"`
	Steps    int        `json:"steps"`
	Findings []*Finding `json:"findings"`
	// Stopped says why there are fewer walks than were asked for; "": there are all.
	Stopped string `json:"stopped,omitempty"`
}

// Finding is something that its author should look at.
type Finding struct {
	Kind    string `json:"kind"` // "failure", "incident", "stuck", "task" or "unreached"
	Message string `json:"message"`
	// Test is a file with the shortest walk that was found. It fails when it runs.
	Test string `json:"test"`

	steps []Step
	last  *document.Node // what the test expects in the end; nil: the last step is refused
}

// Explore walks through a workflow at random: events that are enabled, by users who have the right, timers, answers of webhooks and jobs,
// with data made from the schemas. The same seed finds the same.
func Explore(k *Known, workflow string, o Exploration) *Explored {
	d := k.newest[workflow]
	walks := make([]*walk, o.Walks)
	next := int64(0) // guarded by mu
	var running sync.WaitGroup
	var mu sync.Mutex
	end := int64(o.Walks) // of the walks; guarded by mu
	begin := func() (i int64, ok bool) {
		mu.Lock()
		defer mu.Unlock()
		next++
		return next - 1, next <= end
	}
	for range runtime.GOMAXPROCS(0) {
		running.Go(func() {
			for i, ok := begin(); ok; i, ok = begin() {
				w := newWalk(k, workflow, rand.New(rand.NewPCG(o.Seed, uint64(i)))) //nolint:gosec // it is to be repeated
				w.walk(o.Steps)
				mu.Lock()
				if walks[i] = w; w.isOver {
					end = min(end, i+1) // NB: those before it are taken in any case, so the same seed stops at the same one
				}
				mu.Unlock()
			}
		})
	}
	running.Wait()
	walks = walks[:end]
	out := &Explored{Workflow: workflow, Walks: len(walks)}
	if n := len(walks); n > 0 && walks[n-1].isOver {
		out.Stopped = fmt.Sprintf("walk %d has come to more than %d events that come on their own: it might never end", n, ownMax)
	}
	found, reached := map[string]*Finding{}, statemachine.NewCoverage(d)
	var keys []string
	for _, w := range walks {
		out.Steps += len(w.steps)
		for _, c := range w.world.Coverage() {
			if c.Of == reached.Of {
				reached.Add(c)
			}
		}
		if w.found == nil {
			continue
		}
		key := w.found.Kind + " " + w.found.Message
		if before := found[key]; before == nil {
			keys = append(keys, key)
			found[key] = w.found
		} else if len(w.found.steps) < len(before.steps) {
			found[key] = w.found
		}
	}
	for _, key := range keys {
		f := found[key]
		f.shorten(k, workflow)
		out.Findings = append(out.Findings, f)
	}
	if len(keys) == 0 && out.Stopped == "" {
		out.Findings = neverLeft(d, walks)
	}
	if i := slices.IndexFunc(walks, func(w *walk) bool { return len(w.steps) > 0 }); i >= 0 && len(keys) == 0 && out.Stopped == "" {
		// NB: what is behind another finding is not reached because of it
		out.Findings = append(out.Findings, unreached(reached, walks[i].steps[0])...)
	}
	out.Findings = append([]*Finding{}, out.Findings...) // NB: a list in JSON, even an empty one
	for _, f := range out.Findings {
		f.Test = string(FileWith(workflow, f))
	}
	return out
}

// FileWith is a file with a test for each of the findings.
func FileWith(workflow string, findings ...*Finding) []byte {
	tests := mapping()
	names := map[string]int{}
	for _, f := range findings {
		name := f.Message
		if names[name]++; names[name] > 1 {
			name += fmt.Sprintf(" (%d)", names[name])
		}
		steps := &document.Node{Kind: document.Sequence}
		for i := range f.steps {
			steps.Items = append(steps.Items, stepNode(&f.steps[i]))
		}
		if f.last != nil {
			steps.Items = append(steps.Items, mapping("expect", f.last))
		}
		tests.Fields = append(tests.Fields, field(name, mapping("steps", steps)))
	}
	return document.Write(mapping("workflow", textNode(workflow), "tests", tests))
}

// neverLeft are the states that walks have entered, and that none has left however much happened.
func neverLeft(d *statemachine.Definition, walks []*walk) []*Finding {
	findings := []*Finding{}
	for _, n := range d.Nodes[1:] {
		if !n.IsLeaf() || n.Kind == statemachine.Final {
			continue
		}
		var all stay
		var first *walk
		for _, w := range walks {
			of := w.stays[n.Position()]
			if of == nil {
				continue
			}
			all.steps, all.left = all.steps+of.steps, all.left || of.left
			if first == nil || of.entered < first.stays[n.Position()].entered {
				first = w
			}
		}
		if first != nil && !all.left && all.steps >= staysMin {
			at := string(n.Machine.ID) + "." + string(n.ID)
			findings = append(findings, &Finding{
				Kind: "stuck", Message: fmt.Sprintf("%s:%d: no walk leaves the state %s", d.Places.File, n.Line, at),
				steps: slices.Clone(first.steps[:first.stays[n.Position()].entered]), last: mapping("done", nodeOf(truth(true))),
			})
		}
	}
	return findings
}

// unreached are the states and transitions that no walk has reached, but for what follows when a parent cancels its child: the instances of
// the walks have no parent.
func unreached(c *statemachine.Coverage, create Step) (findings []*Finding) {
	parts, cancelled := c.Parts(), map[string]bool{}
	for _, p := range parts {
		if to, ok := strings.CutPrefix(p.Text, "parent.cancelled"); ok && p.Kind == "transition" {
			cancelled[p.Text], cancelled[strings.TrimPrefix(to, " → ")] = true, true
		}
	}
	for _, p := range parts {
		if p.Count > 0 || p.Kind != "state" && p.Kind != "transition" || cancelled[cmp.Or(p.Text, string(p.At.Node))] {
			continue
		}
		at := string(p.At.Machine)
		if p.At.Node != statemachine.NodeID(at) {
			at += "." + string(p.At.Node)
		}
		f := &Finding{Kind: "unreached", Message: fmt.Sprintf("%s:%d: no walk reaches the %s %s", p.File, p.Line, p.Kind, strings.TrimSpace(at+" "+p.Text)), steps: []Step{create}}
		event, _, _ := strings.Cut(p.Text, " → ")
		f.last = mapping("events", &document.Node{Kind: document.Sequence, Items: []*document.Node{textNode(cmp.Or(event, "to "+at))}})
		findings = append(findings, f)
	}
	return findings
}

// shorten leaves out the steps without which the same is found.
func (f *Finding) shorten(k *Known, workflow string) {
	for size := len(f.steps) / 2; size > 0; {
		shorter := false
		for from := 1; from+size <= len(f.steps); from++ { // NB: the first one creates the instance
			less := slices.Concat(f.steps[:from], f.steps[from+size:])
			if again := replay(k, workflow, less); again != nil && again.Kind == f.Kind && again.Message == f.Message && len(again.steps) == len(less) {
				f.steps, shorter = less, true
				break
			}
		}
		if !shorter || size > len(f.steps)/2 {
			size /= 2
		}
	}
}

// replay is what a walk finds that takes these steps; nil when one of them is refused.
func replay(k *Known, workflow string, steps []Step) *Finding {
	w := newWalk(k, workflow, nil)
	for i := range steps {
		s := &steps[i]
		if w.found != nil {
			return nil
		}
		err := w.do(s)
		if err != nil && failure.Of(err).Kind != failure.ErrExecution {
			return nil
		}
		w.steps = append(w.steps, *s)
		if err != nil {
			w.fail(s, err)
			continue
		}
		w.look()
	}
	if w.found == nil && w.of != nil && !w.of.IsDone() && len(w.options()) == 0 {
		w.find("stuck", "nobody and nothing can leave "+nodes(w.of.State().Ends()), mapping("done", nodeOf(truth(true))))
	}
	return w.found
}
