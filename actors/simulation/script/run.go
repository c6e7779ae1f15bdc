package script

import (
	"cmp"
	"fmt"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"troupe/actors/failure"
	"troupe/actors/simulation"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

// Result is what a test has come to.
type Result struct {
	*Test
	Failure  *Failure // nil: it has passed
	Duration time.Duration
	// Coverage is what it has reached, one for each version of a workflow, if that was asked for.
	Coverage []*statemachine.Coverage
}

// Failure is the first step that did not go as it should.
type Failure struct {
	Line    int    `json:"line"` // of the step
	Step    int    `json:"step"` // counted from 1
	Message string `json:"message,omitempty"`
	// Differences are those from what the step expects; none when Message says what went wrong.
	Differences []Difference `json:"differences,omitempty"`
	// History has the entries of the instance up to there, the oldest first.
	History []string `json:"history,omitempty"`
}

// Summary is the failure on one line.
func (f *Failure) Summary() string {
	if f.Message != "" || len(f.Differences) == 0 {
		return f.Message
	}
	first := f.Differences[0].String()
	if more := len(f.Differences) - 1; more > 0 {
		first += fmt.Sprintf(" (and %d more)", more)
	}
	return first
}

// Options say how tests run.
type Options struct {
	Known  *Known
	Covers bool // notes what the tests reach
}

// RunAll runs tests, several at a time. The results stand in the order of the tests.
func RunAll(tests []*Test, o Options) []*Result {
	results := make([]*Result, len(tests))
	var next atomic.Int64
	var running sync.WaitGroup
	for range min(len(tests), runtime.GOMAXPROCS(0)) {
		running.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(tests)); i = next.Add(1) - 1 {
				results[i] = Run(tests[i], o)
			}
		})
	}
	running.Wait()
	return results
}

// Run runs one test.
func Run(t *Test, o Options) *Result {
	begun := time.Now()
	r := &run{world: o.Known.World(t.Now, o.Covers), workflow: t.Workflow, known: o.Known}
	result := &Result{Test: t}
	for i := range t.Steps {
		if failed := r.step(&t.Steps[i]); failed != nil {
			failed.Line, failed.Step, failed.History = t.Steps[i].Line, i+1, r.history(&t.Steps[i])
			result.Failure = failed
			break
		}
	}
	result.Duration, result.Coverage = time.Since(begun), r.world.Coverage()
	return result
}

// run is a world in which the steps of a test happen.
type run struct {
	world    *simulation.World
	known    *Known
	workflow string
	of       *simulation.Instance // the one that was created last; nil: none
	// events and sent are how much there was before the step that did something last.
	events, sent int
	may          func(bytes int) error // simulation.Options.May; nil: there is no bound
}

func (r *run) step(s *Step) *Failure {
	if s.Action != NoAction {
		if failed := r.act(s); failed != nil {
			return failed
		}
	}
	return r.expected(s)
}

// expected compares what the step expects with what there is.
func (r *run) expected(s *Step) *Failure {
	if s.Expect == nil {
		return nil
	}
	in, err := r.instance(s)
	if err != nil {
		return &Failure{Message: err.Error()}
	}
	view, err := r.view(in, s.Expect)
	if err != nil {
		return &Failure{Message: err.Error()}
	}
	c := comparison{now: r.world.Now()}
	if c.expected(s.Expect, view); len(c.out) > 0 {
		return &Failure{Differences: c.out}
	}
	return nil
}

// act does what the step says, and compares whether it was refused with whether it should be.
func (r *run) act(s *Step) *Failure {
	r.events, r.sent = len(r.world.Events()), len(r.world.Sent())
	err := r.do(s)
	status := StatusOf(err)
	switch {
	case err == nil && s.Refused:
		return &Failure{Message: "expected the step to be refused, but it was done"}
	case err != nil && !s.Refused:
		return &Failure{Message: "refused with " + strconv.Itoa(status) + ": " + reasonOf(err)}
	case err != nil && s.RefusedStatus != 0 && s.RefusedStatus != status:
		return &Failure{Message: fmt.Sprintf("expected the step to be refused with %d, but it was with %d: %s", s.RefusedStatus, status, reasonOf(err))}
	}
	return nil
}

func (r *run) do(s *Step) error {
	if s.Action == Create {
		in, err := r.world.Create(s.As, cmp.Or(s.Name, r.workflow), s.Public, s.Private)
		if in != nil {
			r.of = in
		}
		return err
	}
	if s.Action == Advance {
		return r.world.Advance(s.Wait)
	}
	in, err := r.instance(s)
	if err != nil {
		return err
	}
	switch s.Action {
	case Send:
		return r.world.Send(s.As, in, s.Name, s.Data)
	case Answer:
		return r.world.Answer(in, s.Name, s.Status, s.Data)
	case Child:
		return r.world.EndChild(in, cmp.Or(s.Name, onlyChild(in)), s.Failed, s.Data)
	case Complete:
		return r.world.CompleteJob(in, s.Name, s.Data)
	default:
		return r.world.FailJob(in, s.Name, s.Message, s.Final)
	}
}

// onlyChild is the workflow of the first child that runs; "" for none.
func onlyChild(in *simulation.Instance) string {
	for _, c := range in.State().Children() {
		if c.Status == statemachine.ChildRuns {
			return c.Workflow
		}
	}
	return ""
}

// instance is the one that a step is about.
func (r *run) instance(s *Step) (*simulation.Instance, error) {
	in := r.of
	if s.In != "" {
		in = nil
		for _, of := range r.world.Instances() {
			if of.Workflow() == s.In {
				in = of
			}
		}
	}
	if in == nil {
		return nil, failure.Refuse(failure.ErrNotFound, "there is no instance of %s", cmp.Or(s.In, r.workflow))
	}
	return in, nil
}

// history is that of the instance of a step, an entry on a line.
func (r *run) history(s *Step) (lines []string) {
	in, err := r.instance(s)
	if err != nil {
		return nil
	}
	for _, e := range in.History() {
		what := cmp.Or(string(e.Event), "created it")
		if e.Data.Kind() != data.Absent && string(e.Data) != "{}" {
			what += " " + shown(e.Data)
		}
		from, to := nodes(e.Start), nodes(e.End)
		if from == to || e.Event == "" {
			from = ""
		} else {
			from += " → "
		}
		lines = append(lines, e.At.Format("2006-01-02 15:04:05")+" "+e.User+" "+what+": "+from+to)
	}
	return lines
}

func nodes(ids []statemachine.NodeID) string { return strings.Join(texts(ids), ", ") }

// statuses are how the interface answers the refusals that the world knows (gateway/INTERFACE.md, "Errors").
var statuses = map[failure.Kind]int{
	failure.ErrInvalid: http.StatusBadRequest, failure.ErrUnauthorized: http.StatusUnauthorized, failure.ErrForbidden: http.StatusForbidden,
	failure.ErrNotFound: http.StatusNotFound, failure.ErrNotAllowed: http.StatusConflict, failure.ErrClaimed: http.StatusConflict,
	failure.ErrEnded: http.StatusConflict, failure.ErrConflict: http.StatusConflict, failure.ErrInUse: http.StatusConflict,
	failure.ErrKeyTaken: http.StatusConflict, failure.ErrTooLarge: http.StatusRequestEntityTooLarge,
	failure.ErrUnprocessable: http.StatusUnprocessableEntity,
}

// StatusOf is the status with which the interface answers an error of a world; 0 for nil.
func StatusOf(err error) int {
	if err == nil {
		return 0
	}
	return cmp.Or(statuses[failure.Of(err).Kind], http.StatusInternalServerError)
}

func reasonOf(err error) string {
	of := failure.Of(err)
	if of.Reason != "" {
		return of.Reason
	}
	if of.Cause != nil {
		return of.Cause.Error()
	}
	return of.Kind.Error()
}
