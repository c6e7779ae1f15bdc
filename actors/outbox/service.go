// Package outbox sends what instances send out: to webhooks, as mails, and to their children and parents. A delivery is
// a row of its instance's shard; so is its next attempt, by workflow, queue and time. The deliveries of one instance
// and queue leave one after the other; all others wait only for their host, which gets 8 requests at a time. What was
// committed leaves when it is durable, at least once, with the same id each time, until it is delivered or dead. An
// outcome is told in the commit that ends the delivery.
package outbox

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"troupe/actors/internal/semaphore"
	"troupe/actors/internal/wait"
	"troupe/actors/trace"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

const (
	// window is how many deliveries of one stream of a shard are on their way at once, those that wait for their host
	// included.
	window     = 16
	againAfter = time.Second
)

// Options configures a Service. All fields but Tracer are required.
type Options struct {
	Store *persistence.Store
	Clock func() time.Time
	// Definition returns the version of a workflow under which a delivery was sent.
	Definition func(workflow string, version uint64) (*statemachine.Definition, error)
	Sender     Sender
	// Tell gives an instance the event of an outcome, in one commit with writes. done is called once, when that is
	// durable, or with failure.ErrNotFound where there is no such instance; it must not block.
	Tell func(o *Outcome, done func(error))
	// Inside makes one attempt to carry out a message to another instance, of package child.
	Inside func(ctx context.Context, key key.Delivery, row *Delivery) Answer
	// Held says that nothing is sent outside now. When that ends, Resumed is called.
	Held   func() bool
	Tracer *trace.Tracer // nil: nobody collects traces
	Log    zerolog.Logger
}

// Sender sends to the outside.
type Sender interface {
	// Send makes one attempt. It ends when ctx does.
	Send(ctx context.Context, a Attempt) Answer
	// URL is where an attempt goes; "" for a mail.
	URL(a Attempt) string
}

// Attempt is one try to deliver.
type Attempt struct {
	ID       string // the same for every try of a delivery, and another for every other delivery
	Instance key.ID
	Queue    string
	Webhook  *statemachine.Webhook // of a mail only how it is tried
	*Delivery
}

// Answer is what happened to an attempt.
type Answer struct {
	// Err is nil when it was delivered. Final: another try would end the same way.
	Err    error
	Final  bool
	Status int // Status and Body are those of the answer, 0 and nothing without one
	Body   data.Value
	After  time.Duration // how long the other side wants to be left alone; 0 when it does not say
}

// Outcome is what an instance is told.
type Outcome struct {
	Workflow string
	Key      key.Delivery
	Event    statemachine.EventName // empty: there is nothing to hear, Writes is all
	Data     data.Value
	Refused  string                   // with a message to another instance: why it will never be carried out
	Writes   func(*persistence.Batch) // Writes adds what the outcome changes in the outbox
	Span     *trace.Span              // of the attempt; nil: nobody follows it
}

// Service sends what the instances of all shards that are led here send out.
type Service struct {
	o       Options
	led     []atomic.Pointer[shard]      // by number: in the latest epoch; nil: in none yet
	inside  *semaphore.Semaphore[string] // places of workflows
	metrics metrics
}

// streamName is what a stream is called: a workflow and a queue.
type streamName struct{ workflow, queue string }

// shard is what is known of the outbox of one shard in one epoch.
type shard struct {
	number   key.Shard
	epoch    uint64
	ctx      context.Context //nolint:containedctx // of the epoch
	wake     chan struct{}   // has room for one
	attempts sync.WaitGroup  // and whatever else is under way

	mu    sync.Mutex
	begun map[streamName]int64 // the earliest time of what was added since the last look
	asked []*ask               // what people want
	over  bool                 // nobody takes asked any more
}

// New returns a service that sends nothing before Begin.
func New(o Options) *Service {
	return &Service{o: o, led: make([]atomic.Pointer[shard], o.Store.Shards()), inside: semaphore.New[string](insidePlaces)}
}

// Begin is that of shard.Background. Attempts end with ctx; they are made again in the next epoch.
func (s *Service) Begin(ctx context.Context, sh key.Shard, epoch uint64) (run func()) {
	x := &shard{number: sh, epoch: epoch, ctx: ctx, wake: make(chan struct{}, 1), begun: map[streamName]int64{}}
	s.led[sh].Store(x)
	return func() { (&sender{service: s, shard: x}).run() }
}

// Began says that an instance has sent something out, which is visible, and whose first attempt is due at that very time: rows of
// later times may have been read before it came.
func (s *Service) Began(sh key.Shard, workflow, queue string, at time.Time) {
	x, name, ms := s.led[sh].Load(), streamName{workflow, queue}, at.UnixMilli()
	if x == nil {
		return // NB: of a commit that was under way; whoever leads next reads what is there
	}
	x.mu.Lock()
	if before, ok := x.begun[name]; !ok || ms < before {
		x.begun[name] = ms
	}
	x.mu.Unlock()
	wait.Notify(x.wake)
}

// Resumed has what was held looked at again.
func (s *Service) Resumed() {
	for sh := range s.led {
		if x := s.led[sh].Load(); x != nil {
			wait.Notify(x.wake)
		}
	}
}

var errEnough = errors.New("enough")

type metrics struct {
	delivered, failed, dead atomic.Int64
	failing                 atomic.Int64 // that of FailingSince in Unix milliseconds, or 0
}

// ended counts an attempt after which nothing of it waits.
func (m *metrics) ended(as *atomic.Int64) {
	as.Add(1)
	m.failing.Store(0)
}

func (m *metrics) fail(at time.Time) {
	m.failed.Add(1)
	m.failing.CompareAndSwap(0, at.UnixMilli())
}

// Metrics is a snapshot of a Service's counters, since the start.
type Metrics struct {
	Delivered, Failed, Dead int64 // Delivered went out, Failed are attempts that are made again, and Dead are given up
	// FailingSince is since when all attempts are to be made again. Zero: the last one is not.
	FailingSince time.Time
}

// Metrics returns the counters as they are now.
func (s *Service) Metrics() Metrics {
	m := Metrics{Delivered: s.metrics.delivered.Load(), Failed: s.metrics.failed.Load(), Dead: s.metrics.dead.Load()}
	if ms := s.metrics.failing.Load(); ms != 0 {
		m.FailingSince = time.UnixMilli(ms)
	}
	return m
}
