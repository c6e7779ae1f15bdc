package simulation_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/child"
	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/internal/instanceid"
	"troupe/actors/job"
	"troupe/actors/message"
	"troupe/actors/outbox"
	"troupe/actors/simulation"
	"troupe/actors/workflow"
	"troupe/actors/workflow/workflowtest"
	"troupe/persistence/clocktest"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

// TestAWorldIsLikeTheService plays random walks in a world and against a router, and compares after each step what was answered and all
// instances: their documents, states, tasks, timers, children and histories. Only the ids that are drawn differ. The walks are the same in
// each run; a failure names the seed and the steps.
func TestAWorldIsLikeTheService(t *testing.T) {
	const walks, steps = 24, 80
	texts := walkedTexts(t)
	of := definitions(t, texts...)
	reached := map[string]*statemachine.Coverage{}
	for seed := range uint64(walks) {
		synctest.Test(t, func(t *testing.T) {
			w := newWalk(t, seed, of, texts)
			defer w.real.End()
			for range steps {
				w.step()
				w.compare()
			}
			for _, c := range w.world.Coverage() {
				id := string(c.Of.ID)
				if reached[id] == nil {
					reached[id] = statemachine.NewCoverage(of[id])
				}
				reached[id].Add(c)
			}
		})
	}
	var missed []string
	parts := 0
	for id, c := range reached {
		for _, p := range c.Parts() {
			parts++
			if !p.IsReached() {
				missed = append(missed, fmt.Sprintf("%s %s %s %s", id, p.Kind, p.At.Node, p.Text))
			}
		}
	}
	assert.Less(t, 4*len(missed), parts, "the walks reach too little to say much; not: %s", strings.Join(missed, "\n"))
}

// walkedTexts are the workflows of the example, without schedules, and those of testdata.
func walkedTexts(t *testing.T) (texts []string) {
	for _, pattern := range []string{example + "*.yaml", "testdata/*.yaml"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			before, behind, has := strings.Cut(string(text), "\nschedules:\n")
			if has {
				_, behind, _ = strings.Cut(behind, "\n\n")
			}
			texts = append(texts, delays.ReplaceAllStringFunc(before+"\n"+behind, shorter))
		}
	}
	return texts
}

// delays are those of days and hours.
var delays = regexp.MustCompile(`\bP(T?)(\d)[DH]\b`)

// shorter has hours be minutes, and days two of them: the router looks at the clock each second.
func shorter(delay string) string {
	n := delay[len(delay)-2:][0] - '0'
	if delay[1] != 'T' {
		n *= 2
	}
	return fmt.Sprintf("PT%dM", n)
}

type walk struct {
	t      *testing.T
	r      *rand.Rand
	of     map[string]*statemachine.Definition
	world  *simulation.World
	real   *workflowtest.Router
	some   []string          // workflows of which instances are created
	ids    map[string]string // of the world's instances, in the router
	said   []string          // the steps
	texts  []string          // the workflows
	leases map[string]string // of jobs in the router

	mu    sync.Mutex
	gates map[string]chan outbox.Answer // guarded by mu; of attempts that wait, by instance and webhook
}

var foreman = &identity.Principal{ID: "foreman", Privileges: []string{"mod-jobs"}}

var walkers = []*identity.Principal{john, mary, paulo}

func newWalk(t *testing.T, seed uint64, of map[string]*statemachine.Definition, texts []string) *walk {
	w := &walk{t: t, r: rand.New(rand.NewPCG(seed, 7)), of: of, ids: map[string]string{}, leases: map[string]string{}, gates: map[string]chan outbox.Answer{}}
	w.said = []string{fmt.Sprintf("seed %d", seed)}
	all := []string{"purchase-order", "leave-request", "order", "visit", "labor", "parcel", "stock-take", "note", "nobody"}
	w.some = []string{all[seed%7], oneOf(w.r, all...)}
	w.real = workflowtest.Start(t, workflowtest.Options{Workflow: workflow.Options{Clock: time.Now, Sender: w, Principal: func(id identity.UserID) *identity.Principal {
		i := slices.IndexFunc(walkers, func(p *identity.Principal) bool { return p.ID == id })
		if i < 0 {
			return nil
		}
		return walkers[i]
	}}})
	w.texts = texts
	w.real.Publish(texts...)
	synctest.Wait()
	w.world = simulation.New(simulation.Options{
		Now: time.Now(), User: newWorldUser, Covers: true,
		Definitions: func(workflow string, _ uint64) (*statemachine.Definition, error) {
			if d := of[workflow]; d != nil {
				return d, nil
			}
			return nil, failure.ErrNotFound
		},
	})
	return w
}

func newWorldUser(name string) (*identity.Principal, error) {
	for _, p := range walkers {
		if string(p.ID) == name {
			return p, nil
		}
	}
	return nil, failure.ErrUnauthorized
}

// Send implements outbox.Sender: an attempt at a webhook waits for the step that answers it.
func (w *walk) Send(ctx context.Context, a outbox.Attempt) outbox.Answer {
	if a.Queue == outbox.MailQueue {
		return outbox.Answer{}
	}
	gate := make(chan outbox.Answer, 1)
	w.mu.Lock()
	w.gates[instanceid.Text(a.Instance)+" "+a.Queue] = gate
	w.mu.Unlock()
	select {
	case answer := <-gate:
		return answer
	case <-ctx.Done():
		return outbox.Answer{Err: ctx.Err()}
	}
}

func (*walk) URL(outbox.Attempt) string { return "" }

func oneOf[T any](r *rand.Rand, values ...T) T { return values[r.IntN(len(values))] }

// payloads are the data of events, good and bad ones, by workflow and name.
var payloads = map[string][]string{
	"purchase-order submit": {`{"items":[{"name":"Desk","quantity":3,"price":499.9}]}`, `{"items":[{"name":"Desk","quantity":4,"price":500}],"note":"soon"}`, `{"items":[{"name":"Pen","quantity":2,"price":1}]}`, `{"items":[]}`},
	"leave-request submit":  {`{"days":1}`, `{"days":9}`, `{"days":9,"reason":"sun"}`, `{"days":0}`},
	"leave-request reject":  {`{"comment":"no"}`, `{"comment":"no"}`, ``},
	"stock-take count":      {`{"counted":3}`, `{"counted":3,"missing":1}`, `{"counted":-1}`},
	"order go":              {`{"n":2}`, `{"n":9}`, ``, `{"m":1}`},
	"order look":            {`{"n":1}`, `{"svcPrivate":{"x":1}}`, `{"svcPublic":{"x":1}}`},
	"visit set":             {`{"divisor":2}`, `{"divisor":0}`, `{"hidden":true}`, `{"hidden":false}`},
	"visit note":            {`{"svcPrivate":{"x":2}}`, `{"svcPublic":{"x":2}}`},
}

func (w *walk) step() {
	all := w.world.Instances()
	who := oneOf(w.r, walkers...)
	kind := w.r.IntN(20)
	if len(all) == 0 || kind < 2 && len(all) < 6 {
		w.create(who)
		return
	}
	in := oneOf(w.r, all...)
	switch {
	case kind < 12:
		w.send(who, in)
	case kind < 14:
		w.task(who, in)
	case kind < 18:
		if w.r.IntN(2) == 0 {
			w.work()
		} else {
			w.answer()
		}
	default:
		by := oneOf(w.r, time.Second, 20*time.Second, time.Minute, 2*time.Minute, 5*time.Minute)
		w.say("advance %s", by)
		w.same(w.world.Advance(by), nil)
		clocktest.Advance(by)
	}
}

func (w *walk) say(format string, args ...any) { w.said = append(w.said, fmt.Sprintf(format, args...)) }

func (w *walk) create(who *identity.Principal) {
	workflow := oneOf(w.r, w.some...)
	public := ""
	if workflow == "order" || w.r.IntN(8) == 0 {
		public = oneOf(w.r, `{"number":"A1"}`, `{"n":1}`)
	}
	w.say("%s creates %s with %s", who.ID, workflow, public)
	in, err := w.world.Create(string(who.ID), workflow, workflowtest.Value(public), nil)
	reply, again := w.real.Create(w.t.Context(), &message.Create{Caller: who, WorkflowID: workflow, Public: workflowtest.Value(public)})
	w.same(err, again)
	if err == nil {
		w.ids[in.ID()] = reply.InstanceID
	}
}

func (w *walk) send(who *identity.Principal, in *simulation.Instance) {
	var available []statemachine.Available
	for range 3 { // so that it is mostly somebody who may
		if available, _ = in.EventsFor(string(who.ID)); len(available) > 0 {
			break
		}
		who = oneOf(w.r, walkers...)
	}
	var name string
	if len(available) > 0 && w.r.IntN(8) > 0 {
		if name = string(oneOf(w.r, available...).Name); slices.Contains([]string{"withdraw", "again", "stop", "submit"}, name) {
			name = string(oneOf(w.r, available...).Name) // they end or begin too much
		}
	} else {
		name = oneOf(w.r, "submit", "approve", "go", "finish", "take", "again", "nothing", "stop", "ledger.done", "look", "set", "note")
	}
	var err error
	given := ""
	if of := payloads[in.Workflow()+" "+name]; of != nil {
		given = oneOf(w.r, of...)
	}
	w.say("%s sends %s %s to %s", who.ID, name, given, in.ID())
	if business := in.State().Key(); business != "" && w.r.IntN(2) == 0 {
		_, err = w.world.SendByKey(string(who.ID), in.Workflow(), business, name, workflowtest.Value(given), nil, nil)
		_, again := w.real.Send(w.t.Context(), &message.Event{Caller: who, WorkflowID: in.Workflow(), Key: business, Name: name, Data: workflowtest.Value(given)})
		if w.world.ByKey(in.Workflow(), business) == nil {
			return // it has ended, and none was to be created
		}
		w.same(err, again)
		return
	}
	err = w.world.Send(string(who.ID), in, name, workflowtest.Value(given))
	_, again := w.real.Try(who, in.Workflow(), w.ids[in.ID()], name, given, "")
	w.same(err, again)
}

func (w *walk) task(who *identity.Principal, in *simulation.Instance) {
	tasks, err := in.Tasks()
	require.NoError(w.t, err)
	if len(tasks) == 0 {
		return
	}
	of, action, to := oneOf(w.r, tasks...), oneOf(w.r, message.Claim, message.Claim, message.Release, message.Assign), oneOf(w.r, walkers...)
	req := &message.TaskChange{Caller: who, TaskID: w.ids[in.ID()] + "-" + of.ID.String(), Action: action}
	name := ""
	if action == message.Assign {
		req.To, name = to, string(to.ID)
	}
	w.say("%s wants to %s %s of %s %s", who.ID, action, of.ID, in.ID(), name)
	_, again := w.real.ChangeTask(w.t.Context(), req)
	w.same(w.world.ChangeTask(string(who.ID), in, of.ID, action, name), again)
}

func (w *walk) answer() {
	for _, in := range w.world.Instances() {
		i := slices.IndexFunc(in.Deliveries(), func(d *simulation.Delivery) bool { return d.State == outbox.Pending && !d.Next.After(w.world.Now()) })
		if i < 0 || w.r.IntN(4) == 0 {
			continue
		}
		d := in.Deliveries()[i]
		status, body := oneOf(w.r, 200, 200, 200, 503, 410, 410), data.Value(oneOf(w.r, ``, `{"number":7}`))
		w.say("%s of %s answers %d", d.Webhook(), in.ID(), status)
		gate := w.ids[in.ID()] + " " + d.Webhook()
		require.NoError(w.t, w.world.Answer(in, d.Webhook(), status, body))
		synctest.Wait()
		w.mu.Lock()
		open := w.gates[gate]
		delete(w.gates, gate)
		w.mu.Unlock()
		require.NotNil(w.t, open, "no attempt of %s waits: %s", gate, w.story())
		open <- outbox.AnswerOf(status, body)
		return
	}
}

// work has a program complete a job or fail it.
func (w *walk) work() {
	for _, in := range w.world.Instances() {
		for _, j := range in.Jobs() {
			if j.Failed || j.Next.After(w.world.Now()) || w.r.IntN(3) == 0 {
				continue
			}
			it := job.Item{JobID: w.ids[in.ID()] + "-" + j.ID.String()}
			it.Lease = w.leaseOf(it.JobID)
			action := oneOf(w.r, job.Complete, job.Complete, job.Fail)
			var err error
			if action == job.Complete {
				it.Output = workflowtest.Value(oneOf(w.r, `{"n":4,"receipt":"R-7"}`, `{"n":0}`, `{}`, ``))
				err = w.world.CompleteJob(in, j.Type, it.Output)
			} else {
				it.Message, it.Final = "too hard", w.r.IntN(3) == 0
				err = w.world.FailJob(in, j.Type, it.Message, it.Final)
			}
			w.say("a program wants to %s %s of %s with %s %t", action, j.Type, in.ID(), it.Output, it.Final)
			errs, again := w.real.Jobs.Change(w.t.Context(), &job.Request{Caller: foreman, Action: action, Items: []job.Item{it}})
			require.NoError(w.t, again)
			w.same(err, errs[0])
			if err == nil {
				delete(w.leases, it.JobID)
			}
			return
		}
	}
}

// leaseOf is the lease of a job in the router. The program has all that it can have.
func (w *walk) leaseOf(id string) string {
	leased, err := w.real.Jobs.Activate(w.t.Context(), &job.Activation{Caller: foreman, Types: []string{"dig", "carry", "pay-supplier"}, Worker: "w", Max: 100})
	require.NoError(w.t, err)
	for _, l := range leased {
		w.leases[l.JobID] = l.Lease
	}
	require.Contains(w.t, w.leases, id, w.story())
	return w.leases[id]
}

func (w *walk) story() string { return strings.Join(w.said, "\n") }

// same compares two answers.
func (w *walk) same(simulated, actual error) {
	w.t.Helper()
	if (simulated == nil) != (actual == nil) {
		w.t.Fatalf("the world says %v, and the router %v:\n%s", simulated, actual, w.story())
	}
	if actual == nil {
		return
	}
	a, b := failure.Of(simulated), failure.Of(actual)
	if a.Kind != b.Kind || a.Reason != b.Reason {
		w.t.Fatalf("the world says %d %q, and the router %d %q:\n%s", a.Kind, a.Reason, b.Kind, b.Reason, w.story())
	}
}

// compare compares all instances.
func (w *walk) compare() {
	w.t.Helper()
	synctest.Wait()
	all := map[string]workflowtest.Stored{}
	count := 0
	for id := range w.of {
		for _, s := range w.real.Instances(id) {
			all[s.Name] = s
			count++
		}
	}
	var named []string
	for _, in := range w.world.Instances() { // NB: a parent comes before its children
		for _, c := range in.State().Children() {
			w.ids[instanceid.Text(child.ID(w.real.ID(in.ID()), c.ID, c.Begun))] = instanceid.Text(child.ID(w.real.ID(w.ids[in.ID()]), c.ID, c.Begun))
		}
	}
	for is, real := range w.ids {
		named = append(named, is, real)
	}
	rename := strings.NewReplacer(named...)
	if count != len(w.world.Instances()) {
		w.t.Fatalf("the world has %d instances, and the router %d:\n%s", len(w.world.Instances()), count, w.story())
	}
	for _, in := range w.world.Instances() {
		s, ok := all[w.ids[in.ID()]]
		require.True(w.t, ok, "the router has no instance %s: %s", in.ID(), w.story())
		d := w.of[in.Workflow()]
		restored, err := d.Restore(s.Name, s.Record)
		require.NoError(w.t, err)
		got, want := rename.Replace(shown(d, in.State(), histories(in))), shown(d, &restored, string(w.real.StoredHistory(w.real.Store, s.ID)))
		if got != want {
			w.t.Fatalf("in the world %s is\n%s\nand in the router\n%s\n%s", in.ID(), got, want, w.story())
		}
	}
}

func histories(in *simulation.Instance) string {
	out := []byte{'['}
	for i, e := range in.History() {
		if i > 0 {
			out = append(out, ',')
		}
		out = e.AppendJSON(out)
	}
	return string(append(out, ']'))
}

// shown is all that is compared of an instance.
func shown(d *statemachine.Definition, in *statemachine.Instance, history string) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s %s %s %s %q %q ended %t\n%s\n", d.ID, d.States(in), in.Public, in.Private, in.Key(), in.Redirect, in.IsEnded(), history)
	for _, t := range in.Timers() {
		if t.Failed {
			t.ID = statemachine.ElementID{} // it has the time, to the nanosecond
		}
		fmt.Fprintf(&out, "timer %s %s %s %t\n", t.ID, t.Event, t.Due, t.Failed)
	}
	for _, t := range in.Tasks() {
		fmt.Fprintf(&out, "task %s %s %q %s\n", t.ID, t.At, t.Assignee, t.Due)
	}
	for _, j := range in.Jobs() {
		fmt.Fprintf(&out, "job %s %s %s %d %s %t\n", j.ID, j.Type, j.At, j.Priority, j.Data, j.Failed)
	}
	for _, c := range in.Children() {
		fmt.Fprintf(&out, "child %s %s %s\n", c.ID, c.Workflow, c.Status)
	}
	return out.String()
}
