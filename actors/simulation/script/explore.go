package script

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"troupe/actors/failure"
	"troupe/actors/outbox"
	"troupe/actors/simulation"
	"troupe/statemachine"
	"troupe/statemachine/data"
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
	var next atomic.Int64
	var running sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		running.Go(func() {
			for i := next.Add(1) - 1; i < int64(o.Walks); i = next.Add(1) - 1 {
				walks[i] = newWalk(k, workflow, rand.New(rand.NewPCG(o.Seed, uint64(i)))) //nolint:gosec // it is to be repeated
				walks[i].walk(o.Steps)
			}
		})
	}
	running.Wait()
	out := &Explored{Workflow: workflow, Walks: o.Walks}
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
	if len(keys) == 0 {
		out.Findings = neverLeft(d, walks)
	}
	if i := slices.IndexFunc(walks, func(w *walk) bool { return len(w.steps) > 0 }); i >= 0 && len(keys) == 0 {
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

// unreached are the states and transitions that no walk has reached.
func unreached(c *statemachine.Coverage, create Step) (findings []*Finding) {
	for _, p := range c.Parts() {
		if p.Count > 0 || p.Kind != "state" && p.Kind != "transition" {
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

// walk is one walk.
type walk struct {
	run
	r       *rand.Rand
	samples sampler
	steps   []Step
	found   *Finding // the first thing; the walk ends there
	stays   map[statemachine.Position]*stay
}

// stay is what is known of an instance's time at a state.
type stay struct {
	entered int // after so many steps, for the first time
	steps   int // that were taken there
	left    bool
}

// staysMin is how many steps without a way out make a state one that nobody can leave.
const staysMin = 30

// note notes where the instance is.
func (w *walk) note() {
	at := w.of.Definition().Positions(w.of.State())
	for _, p := range at {
		if w.stays[p] == nil {
			w.stays[p] = &stay{entered: len(w.steps)}
		}
		w.stays[p].steps++
	}
	for p, of := range w.stays {
		of.left = of.left || !slices.Contains(at, p)
	}
}

func newWalk(k *Known, workflow string, r *rand.Rand) *walk {
	return &walk{run: run{known: k, workflow: workflow, world: k.World(DefaultNow, true)}, r: r, samples: sampler{r: r}, stays: map[statemachine.Position]*stay{}}
}

func (w *walk) walk(steps int) {
	w.create()
	for w.of != nil && w.found == nil && len(w.steps) < steps && !w.of.IsDone() {
		all := w.options()
		if len(all) == 0 {
			w.find("stuck", "nobody and nothing can leave "+nodes(w.of.State().Ends()), mapping("done", nodeOf(truth(true))))
			return
		}
		w.take(&all[w.r.IntN(len(all))])
		w.note()
	}
}

func (w *walk) create() {
	d := w.known.newest[w.workflow]
	users := w.known.users()
	for _, i := range w.r.Perm(len(users)) {
		s := Step{Action: Create, As: users[i]}
		s.Public, _ = w.samples.fitting(d.CreatePublic.Text(), func(v data.Value) error { return d.CheckCreation(v, nil) })
		if w.do(&s) == nil {
			w.steps = append(w.steps, s)
			w.look()
			w.note()
			return
		}
	}
}

// options are the steps that can be taken now, events without their data.
func (w *walk) options() (all []Step) {
	for _, in := range w.world.Instances() {
		s := Step{}
		if in != w.of {
			if s.In = in.Workflow(); in.IsDone() {
				continue
			}
			if newest, _ := w.instance(&s); newest != in {
				continue // a file cannot name it
			}
		}
		for _, user := range w.known.users() {
			events, _ := in.EventsFor(user)
			for _, e := range events {
				if e.Guard != statemachine.GuardFalse {
					s := s
					s.Action, s.As, s.Name, s.Data = Send, user, string(e.Name), e.Schema
					all = append(all, s)
				}
			}
		}
		all = append(all, w.answers(in, s)...)
	}
	if at := w.next(); at > 0 {
		all = append(all, Step{Action: Advance, Wait: at})
	}
	return all
}

// answers are those of webhooks and of workers.
func (w *walk) answers(in *simulation.Instance, s Step) (all []Step) {
	for i, d := range in.Deliveries() {
		isFirst := !slices.ContainsFunc(in.Deliveries()[:i], func(o *simulation.Delivery) bool { return o.Webhook() == d.Webhook() && o.State == outbox.Pending })
		if d.State == outbox.Pending && isFirst && !d.Next.After(w.world.Now()) {
			for _, status := range []int{200, 410} {
				s := s
				s.Action, s.Name, s.Status = Answer, d.Webhook(), status
				all = append(all, s)
			}
		}
	}
	seen := map[string]bool{}
	for _, j := range in.Jobs() {
		if seen[j.Type] || j.Failed || j.Next.After(w.world.Now()) {
			continue
		}
		seen[j.Type] = true
		done, failed := s, s
		done.Action, done.Name = Complete, j.Type
		failed.Action, failed.Name, failed.Message, failed.Final = Fail, j.Type, "it failed", true
		all = append(all, done, failed)
	}
	return all
}

// next is how far away the next timer or attempt is; 0: there is none.
func (w *walk) next() (wait time.Duration) {
	note := func(d time.Duration) {
		if d = max(d, 1); wait == 0 || d < wait {
			wait = d
		}
	}
	for _, in := range w.world.Instances() {
		if timers := in.Timers(); len(timers) > 0 {
			note(timers[0].Due.Sub(w.world.Now()))
		}
		for _, d := range in.Deliveries() {
			if d.State == outbox.Pending && d.Next.After(w.world.Now()) {
				note(d.Next.Sub(w.world.Now()))
			}
		}
		for _, j := range in.Jobs() {
			if !j.Failed && j.Next.After(w.world.Now()) {
				note(j.Next.Sub(w.world.Now()))
			}
		}
	}
	return wait
}

// take takes a step. It ignores that data is refused which was made from a schema.
func (w *walk) take(s *Step) {
	in, err := w.instance(s)
	if err != nil {
		return
	}
	d := in.Definition()
	switch s.Action {
	case Send:
		s.Data = w.eventData(d, s)
	case Complete:
		if of := d.Job(s.Name); of != nil && of.Output != nil {
			s.Data, _ = w.samples.fitting(of.Output.Text(), of.Output.Check)
		}
	}
	err = w.do(s)
	if err != nil && failure.Of(err).Kind != failure.ErrExecution {
		return
	}
	w.steps = append(w.steps, *s)
	if err != nil {
		w.find("failure", fmt.Sprintf("%s %s fails: %s", s.Action, cmp.Or(s.Name, delayText(s.Wait)), reasonOf(err)), nil)
		return
	}
	w.look()
}

// eventData replaces the schema of an event by data that fits it.
func (w *walk) eventData(d *statemachine.Definition, s *Step) data.Value {
	of := d.Events[statemachine.EventName(s.Name)]
	if of == nil || of.Schema == nil || s.Data.Kind() == data.Absent {
		return nil
	}
	v, _ := w.samples.fitting(s.Data, of.Schema.Check)
	if string(v) == "{}" {
		return nil
	}
	return v
}

// look looks for what should not be where the instances are now.
func (w *walk) look() {
	for _, in := range w.world.Instances() {
		if of := in.Incidents(); len(of) > 0 && in == w.of {
			w.find("incident", fmt.Sprintf("%s fails: %s", cmp.Or(string(of[0].Event), "an event"), of[0].Fault.Error()),
				mapping("incidents", &document.Node{Kind: document.Sequence}))
			return
		}
	}
	tasks, _ := w.of.Tasks()
	for _, t := range tasks {
		if t.Assignee == "" && !w.isForSomebody(t.ID) {
			w.find("task", "nobody can do the task of "+string(t.At.Machine)+"."+string(t.At.Node), mapping("tasks", &document.Node{Kind: document.Sequence}))
			return
		}
	}
}

func (w *walk) isForSomebody(id statemachine.ElementID) bool {
	for _, user := range w.known.users() {
		tasks, err := w.of.TasksFor(user)
		if may, _ := w.of.MayRead(user); err != nil || !may {
			continue
		}
		for _, t := range tasks {
			if t.ID == id && (t.IsCandidate || len(t.Events) > 0) {
				return true
			}
		}
	}
	return false
}

func (w *walk) find(kind, message string, last *document.Node) {
	w.found = &Finding{Kind: kind, Message: message, steps: slices.Clone(w.steps), last: last}
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
			w.find("failure", fmt.Sprintf("%s %s fails: %s", s.Action, cmp.Or(s.Name, delayText(s.Wait)), reasonOf(err)), nil)
			continue
		}
		w.look()
	}
	if w.found == nil && w.of != nil && !w.of.IsDone() && len(w.options()) == 0 {
		w.find("stuck", "nobody and nothing can leave "+nodes(w.of.State().Ends()), mapping("done", nodeOf(truth(true))))
	}
	return w.found
}
