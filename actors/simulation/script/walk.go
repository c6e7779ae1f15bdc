package script

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/outbox"
	"troupe/actors/simulation"
	"troupe/statemachine"
	"troupe/statemachine/data"
	"troupe/statemachine/document"
)

// walk is one walk.
type walk struct {
	run
	r       *rand.Rand
	samples sampler
	steps   []Step
	found   *Finding // the first thing; the walk ends there
	stays   map[statemachine.Position]*stay
	// spared are the kinds of steps that the walk leaves out in its first half, as far as it can, once that is drawn for each of them; nil:
	// it takes all.
	spared map[string]bool
	own    int  // events that came on their own
	isOver bool // there were more than ownMax
}

// ownMax bounds the events of a walk that come on their own. What goes beyond it would be explored for hours.
const ownMax = 2_000

// stay is what is known of an instance's time at a state.
type stay struct {
	entered int // after so many steps, for the first time
	steps   int // that were taken there when no kind was left out
	left    bool
}

// A timer as short as shortWait, again and again, is a loop that is slowed down within endlessWait.
const (
	shortWait   = time.Second
	endlessWait = 2 * time.Minute
)

// staysMin is how many steps without a way out make a state one that nobody can leave.
const staysMin = 30

// note notes where the instance is.
func (w *walk) note() {
	at := w.of.Definition().Positions(w.of.State())
	for _, p := range at {
		if w.stays[p] == nil {
			w.stays[p] = &stay{entered: len(w.steps)}
		}
		if w.spared == nil {
			w.stays[p].steps++
		}
	}
	for p, of := range w.stays {
		of.left = of.left || !slices.Contains(at, p)
	}
}

func newWalk(k *Known, workflow string, r *rand.Rand) *walk {
	w := &walk{r: r, samples: sampler{r: r}, stays: map[statemachine.Position]*stay{}}
	o := k.options(DefaultNow, true)
	o.May = func(int) error {
		if w.own++; w.own > ownMax {
			w.isOver = true
			return failure.Refuse(failure.ErrExecution, "more than %d events of a walk come on their own", ownMax)
		}
		return nil
	}
	w.run = run{known: k, workflow: workflow, world: simulation.New(o)}
	return w
}

func (w *walk) walk(steps int) {
	// NB: half of the walks leave some kinds of steps out at first. What needs the same answer three times in a row, or that nobody ends the
	// instance before, is hardly reached otherwise.
	if w.r.IntN(2) == 0 {
		w.spared = map[string]bool{}
	}
	w.create()
	for w.of != nil && w.found == nil && !w.isOver && len(w.steps) < steps && !w.of.IsDone() {
		all := w.options()
		if len(all) == 0 {
			w.find("stuck", "nobody and nothing can leave "+nodes(w.of.State().Ends()), mapping("done", nodeOf(truth(true))))
			return
		}
		if len(w.steps) >= steps/2 {
			w.spared = nil
		}
		w.take(w.choose(all))
		w.note()
	}
}

func (w *walk) create() {
	d := w.known.newest[w.workflow]
	users := w.known.users()
	for _, i := range w.r.Perm(len(users)) {
		s := Step{Action: Create, As: users[i]}
		s.Public, _ = w.samples.fitting(d.CreatePublic.Text(), func(v data.Value) error { return d.CheckCreation(v, nil) })
		err := w.do(&s)
		if err != nil && failure.Of(err).Kind != failure.ErrExecution {
			continue
		}
		w.steps = append(w.steps, s)
		if err != nil {
			w.fail(&s, err)
			return
		}
		w.look()
		w.note()
		return
	}
}

// choose draws what happens, and then who does it: an event that everybody can send does not hide the others.
func (w *walk) choose(all []Step) *Step {
	var kinds, kept []string
	of := map[string][]*Step{}
	for i := range all {
		s := &all[i]
		kind := fmt.Sprint(s.Action, s.In, s.Name, s.Status, s.Wait >= endlessWait)
		if of[kind] == nil {
			kinds = append(kinds, kind)
		}
		of[kind] = append(of[kind], s)
	}
	for _, kind := range kinds {
		is, drawn := w.spared[kind]
		if w.spared != nil && !drawn {
			is = w.r.IntN(2) == 0
			w.spared[kind] = is
		}
		if !is {
			kept = append(kept, kind)
		}
	}
	if len(kept) == 0 {
		kept = kinds
	}
	steps := of[kept[w.r.IntN(len(kept))]]
	return steps[w.r.IntN(len(steps))]
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
		if at <= shortWait {
			all = append(all, Step{Action: Advance, Wait: endlessWait})
		}
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
		w.fail(s, err)
		return
	}
	w.look()
}

// fail finds that a step fails, unless the walk is over.
func (w *walk) fail(s *Step, err error) {
	what := s.Action.String()
	if s.Action != Create {
		what += " " + cmp.Or(s.Name, delayText(s.Wait))
	}
	if !w.isOver {
		w.find("failure", what+" fails: "+reasonOf(err), nil)
	}
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
	if of := w.of.Incidents(); len(of) > 0 {
		w.find("incident", w.incidentText(&of[0]), mapping("incidents", &document.Node{Kind: document.Sequence}))
		return
	}
	tasks, _ := w.of.Tasks()
	for _, t := range tasks {
		if problem := w.problemOf(t.ID); t.Assignee == "" && problem != "" {
			w.find("task", problem+" the task of "+string(t.At.Machine)+"."+string(t.At.Node), mapping("tasks", &document.Node{Kind: document.Sequence}))
			return
		}
	}
}

func (w *walk) incidentText(of *simulation.Incident) string {
	if node, ok := strings.CutPrefix(string(of.Event), "error.invoke."); ok && of.Fault.Line == 0 {
		for _, j := range w.of.Jobs() {
			if j.Failed && string(j.At.Node) == node {
				return fmt.Sprintf("job %s fails for good, and nothing in %s takes that: add onError to its invoke, or an operator has to retry it", j.Type, node)
			}
		}
	}
	return fmt.Sprintf("%s fails: %s", cmp.Or(string(of.Event), "an event"), of.Fault.Error())
}

// problemOf is why nobody does a task: its rules name nobody who could claim it, or those who can may send none of its events, and others may;
// "" for none.
func (w *walk) problemOf(id statemachine.ElementID) string {
	named, isFor, ends := false, false, false
	for _, user := range w.known.users() {
		tasks, err := w.of.TasksFor(user)
		may, _ := w.of.MayRead(user)
		for _, t := range tasks {
			switch {
			case err != nil || t.ID != id:
			case may && t.IsCandidate && len(t.Events) > 0:
				return ""
			default:
				named = named || may && isNamed(&t.Candidates, w.known.directory.Principal(identity.UserID(user)))
				isFor, ends = isFor || may && t.IsCandidate, ends || len(t.Events) > 0
			}
		}
	}
	switch {
	case isFor && ends:
		return "those who can claim it can send no event of"
	case !isFor && !(ends && named): // NB: where a condition alone stops all, others may go on, as who asked for a leave may withdraw it
		return "nobody can do"
	}
	return ""
}

// isNamed reports whether the lists of a task's rules, whatever their conditions, name a user.
func isNamed(c *statemachine.Candidates, p *identity.Principal) bool {
	both := func(names, of []string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return slices.Contains(of, name) })
	}
	return c.Everybody || slices.Contains(c.Users, string(p.ID)) || both(c.Roles, p.Roles) || both(c.Privileges, p.Privileges)
}

func (w *walk) find(kind, message string, last *document.Node) {
	w.found = &Finding{Kind: kind, Message: message, steps: slices.Clone(w.steps), last: last}
}
