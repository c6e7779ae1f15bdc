package script

import (
	"time"

	"troupe/statemachine/data"
	"troupe/statemachine/document"
)

// File is one file of tests, all of one workflow.
type File struct {
	Name     string // its path in the home
	Workflow string
	Tests    []*Test
}

// Test is one story of an instance, told by its steps.
type Test struct {
	File, Workflow, Name string
	Line                 int
	Now                  time.Time // when the test begins
	Steps                []Step
}

// Action is what a step does.
type Action uint8

// The actions. A step without one only expects something.
const (
	NoAction Action = iota
	Create          // a user creates an instance
	Send            // a user sends an event
	Advance         // time goes by, and timers fire in their order
	Answer          // the receiver of a webhook answers its oldest open delivery
	Complete        // a worker completes a job
	Fail            // a worker fails a job
	Child           // a child ends, whatever its own definition would do
)

// actions are their keys in a step, in the order of the constants.
var actions = [...]string{Create: "create", Send: "send", Advance: "advance", Answer: "answer", Complete: "complete", Fail: "fail", Child: "child"}

// String is the action's key in a step.
func (a Action) String() string { return actions[a] }

// Step is one entry of a test's steps.
type Step struct {
	Line   int
	Action Action
	As     string // who creates or sends
	// In is the workflow whose newest instance the step is about; "": the instance that the test has created last.
	In string
	// Name is the event, the webhook, the type of the job, or the workflow of the child; "" of a child is the only one.
	Name string
	// Data is that of the event, the body of the answer, the output of the job or of the child; absent: none.
	Data            data.Value
	Public, Private data.Value    // of the new instance; absent: none
	Wait            time.Duration // by which time advances
	Status          int           // of the answer
	Failed          bool          // the child has failed
	Final           bool          // the job is not tried again
	Message         string        // why the job failed
	// Refused: the step must be refused, with RefusedStatus unless that is 0.
	Refused       bool
	RefusedStatus int
	// Expect is what must hold after the step; nil: nothing is asked.
	Expect *document.Node
}

// DefaultNow is when a test begins that does not say so: a Monday morning.
var DefaultNow = time.Date(2026, time.January, 5, 9, 0, 0, 0, time.UTC)
