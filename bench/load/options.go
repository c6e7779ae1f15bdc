package load

import (
	"cmp"
	"crypto/tls"
	"errors"
	"slices"
	"strings"
	"time"

	"troupe/statemachine"
)

// Options says what a run does. Only Addr must be set; a zero field means its default.
type Options struct {
	// Addr is the server, "host:port".
	Addr string
	// Others are further nodes of the server's cluster, "host:port". With them, each of Connections is one to every node, with one
	// request at a time in all. Requests about an instance go to the node that leads it, as answers have told
	// (gateway/INTERFACE.md, "Which node leads"), and all others to each in turn.
	Others []string
	// Host is what the header of that name says. Default Addr.
	Host string
	// TLS is set when the server speaks TLS; its ServerName must be set. Default: none.
	TLS *tls.Config
	// BasePath is in front of every route, such as "/platform". Default: nothing.
	BasePath string
	// Token is an API token of a user who may create, read and send. Empty: no credential is sent.
	Token string
	// Tokens are those of the users of the scenario, by their names. Who is not in it has Token.
	Tokens map[string]string

	// Scenario is what is sent. Default BuiltIn.
	Scenario *Scenario
	// Batch is how many events go into one request. Default 0: each is a request of its own. Events are sent in batches
	// only if the scenario goes round (Scenario.Batches). It is also how many jobs are taken at once, of which 0 is JobsDefault.
	Batch int

	// Connections is how many connections are kept open, each with one request at a time. Default 64.
	Connections int
	// Instances is how many instances the events and reads go to, in turn; they are created before the warm-up. Default
	// 10,000. With fewer instances than connections, connections share them: one is a hot instance.
	Instances int
	// Preload is how many events each instance gets before the warm-up, so that its history is that long. Default none.
	Preload int
	// Mix is how often each kind is sent. Default only events.
	Mix Mix
	// Minimal asks for answers without history (Prefer: return=minimal).
	Minimal bool

	// Rate is how many requests per second are sent, whatever the answers do. Zero is a closed loop.
	Rate float64
	// QueueMax is how many requests of an open loop may wait for a free connection; more are missed. Default 65,536;
	// negative is none, for callers who give up at once when all their connections are busy.
	QueueMax int
	// Heed makes a connection whose request was refused send nothing for as long as Retry-After says.
	Heed bool
	// WarmUp is how long the load runs before it is measured. Default 1 s; negative is not at all.
	WarmUp time.Duration
	// Duration is the length of the measured window. Default 5 s.
	Duration time.Duration

	// Began and Ended are called once each, in this order, at the edges of the measured window, for example to look at
	// the server's processor time. They must not block. A run that is broken off early may call neither.
	Began, Ended func()

	// PID is the process of the server, whose processor time and memory are noted. Default 0: not known.
	PID int
	// Every is the length of the intervals of Result.Series. Default: there is none.
	Every time.Duration
	// Tick is called with each interval when it is over. It must not block, nor keep the interval.
	Tick func(*Interval)
}

// BatchMax bounds a batch, as the interface does.
const BatchMax = 10_000

// EnsureDefaults replaces zeroes by the defaults.
func (o *Options) EnsureDefaults() {
	o.Connections = cmp.Or(o.Connections, 64)
	o.Instances = cmp.Or(o.Instances, 10_000)
	o.WarmUp = cmp.Or(o.WarmUp, time.Second)
	o.Duration = cmp.Or(o.Duration, 5*time.Second)
	o.QueueMax = max(0, cmp.Or(o.QueueMax, 1<<16))
	if o.Mix == (Mix{}) {
		o.Mix[Event] = 1
	}
	o.Host = cmp.Or(o.Host, o.Addr)
	if o.Scenario == nil {
		o.Scenario = BuiltIn()
	}
	if o.Tick == nil {
		o.Tick = func(*Interval) {}
	}
	if o.Began == nil {
		o.Began = func() {}
	}
	if o.Ended == nil {
		o.Ended = func() {}
	}
}

// Validate reports everything that is wrong at once. The defaults must have been set.
func (o *Options) Validate() error {
	var faults []error
	demand := func(ok bool, text string) {
		if !ok {
			faults = append(faults, errors.New("load options: "+text))
		}
	}
	demand(o.Addr != "", "Addr is missing")
	demand(o.Connections > 0 && o.Instances > 0, "Connections and Instances must be above 0")
	demand(o.Preload >= 0 && o.Rate >= 0, "Preload and Rate must not be negative")
	demand(o.Duration > 0 && o.Every >= 0, "Duration must be above 0, and Every must not be negative")
	_, ok := statemachine.ParseWorkflowID(o.Scenario.WorkflowID)
	demand(ok, "WorkflowID is not the id of a workflow")
	demand(o.Batch >= 0 && o.Batch <= BatchMax, "Batch must be between 0 and 10,000")
	demand(o.Mix[Job] == 0 || o.Scenario.Works(), "jobs need a scenario that says with which outputs they are completed")
	demand(o.Mix[Job] == 0 || o.Batch <= JobsMax, "at most 1,000 jobs are taken at once")
	demand(o.Mix[Event] == 0 || len(o.Scenario.places) > 0, "events need a scenario with a walk")
	demand(o.Batch == 0 || o.Scenario.Batches(), "batches need a scenario of one user in which every step says its node, and every node has a step")
	demand(o.Instances >= o.Connections || o.Scenario.Round(), "connections can share instances only if every step of the scenario says its node, and every node has a step: Instances must not be below Connections")
	demand(!slices.Contains(o.Others, ""), "a further address is empty")
	headers := o.Addr + o.Host + o.BasePath + o.Token
	for _, token := range o.Tokens {
		headers += token
	}
	demand(!strings.ContainsAny(headers, "\r\n "), "Addr, Host, BasePath and Token stand in headers and must not have blanks")
	return errors.Join(faults...)
}
