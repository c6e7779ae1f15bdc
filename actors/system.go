package actors

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"

	"troupe/actors/internal/mailbox"
)

// System is the protoactor system that all actors of one process share. Its root is the actor "service", whose
// children Spawn starts.
type System struct {
	actors   *actor.ActorSystem
	log      zerolog.Logger
	service  *actor.PID
	stopOnce sync.Once // protoactor panics at a second shutdown

	mu       sync.Mutex
	branches map[string]branch // guarded by mu; the children of service by their addresses

	deadLetters, restarts atomic.Int64
}

// branch is a child of service.
type branch struct {
	name  string
	about func() []string
}

// NewSystem starts an actor system that logs to log. protoactor's own metrics
// stay off: they register on global state.
func NewSystem(log zerolog.Logger) *System {
	logger := slog.New(zerolog.NewSlogHandler(log.Level(max(log.GetLevel(), zerolog.WarnLevel))))
	s := &System{log: log, branches: map[string]branch{}, actors: actor.NewActorSystem(
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return logger }),
		actor.WithDeadLetterRequestLogging(false),
		// NB: a goroutine waits that long after a message to an actor that has
		// ended, which is what the last word to a worker can be.
		actor.WithDeadLetterThrottleInterval(time.Millisecond),
	)}
	s.actors.EventStream.Subscribe(s.noteDeadLetter)
	s.service, _ = s.actors.Root.SpawnNamed(Props(s.receive, s.resume), "service") // the name is free
	return s
}

// Root returns the context that sends to actors.
func (s *System) Root() *actor.RootContext { return s.actors.Root }

// Props returns the properties of actors that take little memory; who sends to an idle one runs it meanwhile. They may be shared: receive
// gets the messages of all, and what belongs to one actor comes with the message. supervise is the rule for children that panic; nil
// for actors that have none.
func Props(receive actor.ReceiveFunc, supervise Supervise) *actor.Props {
	p := actor.PropsFromFunc(receive, actor.WithMailbox(func() actor.Mailbox { return new(mailbox.Mailbox) }))
	if supervise != nil {
		p.Configure(actor.WithSupervisor(supervise))
	}
	return p
}

// Supervise decides what becomes of a child that has panicked. It must have children restart, resume or stop it: its mailbox stands
// still until then. It is called between two messages of the parent.
type Supervise func(children actor.Supervisor, who *actor.PID, failed *actor.RestartStatistics, reason, message any)

// HandleFailure implements actor.SupervisorStrategy. NB: protoactor's own stops an actor without a word after so many restarts.
func (f Supervise) HandleFailure(_ *actor.ActorSystem, children actor.Supervisor, who *actor.PID, failed *actor.RestartStatistics, reason, message any) {
	f(children, who, failed, reason, message)
}

// spawn is the message that asks service for a child.
type spawn struct {
	name  string
	props *actor.Props
	about func() []string
	done  chan *actor.PID
}

// Spawn starts a child of service. about describes it, one line for itself and one for each kind of child; nil: there is nothing to say.
func (s *System) Spawn(name string, props *actor.Props, about func() []string) *actor.PID {
	m := spawn{name, props, about, make(chan *actor.PID, 1)}
	s.actors.Root.Send(s.service, m)
	return <-m.done
}

// receive is the actor service.
func (s *System) receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case spawn:
		pid, err := ctx.SpawnNamed(m.props, m.name)
		for n := 2; err != nil; n++ { // the one before has not ended yet
			pid, err = ctx.SpawnNamed(m.props, fmt.Sprintf("%s.%d", m.name, n))
		}
		s.mu.Lock()
		s.branches[pid.Id] = branch{m.name, m.about}
		s.mu.Unlock()
		m.done <- pid
	case *actor.Terminated:
		s.mu.Lock()
		delete(s.branches, m.Who.Id)
		s.mu.Unlock()
	}
}

// resume is the rule for children of service, which keep what they have: their own children.
func (s *System) resume(children actor.Supervisor, who *actor.PID, _ *actor.RestartStatistics, reason, _ any) {
	s.restarts.Add(1)
	s.log.Error().Str("actor", who.Id).Str("panic", fmt.Sprint(reason)).Msg("an actor panicked; it goes on")
	children.ResumeChildren(who)
}

// noteDeadLetter counts and logs what was sent to an actor that has ended.
func (s *System) noteDeadLetter(event any) {
	letter, ok := event.(*actor.DeadLetterEvent)
	if !ok {
		return
	}
	switch letter.Message.(type) {
	case actor.SystemMessage, actor.AutoReceiveMessage: // protoactor's own
		return
	}
	s.deadLetters.Add(1)
	s.log.Warn().Str("actor", letter.PID.GetId()).Str("message", fmt.Sprintf("%T", letter.Message)).Msg("a message was sent to an actor that has ended")
}

// Metrics are counted since the start.
type Metrics struct {
	// DeadLetters are messages to actors that had ended, and Restarts panics of children of service.
	DeadLetters, Restarts int64
}

// Metrics returns the counters as they are now.
func (s *System) Metrics() Metrics {
	return Metrics{DeadLetters: s.deadLetters.Load(), Restarts: s.restarts.Load()}
}

// Tree is the tree of the actors that there are now, as text.
func (s *System) Tree() string {
	s.mu.Lock()
	branches := make([]branch, 0, len(s.branches))
	for _, b := range s.branches {
		branches = append(branches, b)
	}
	s.mu.Unlock()
	slices.SortFunc(branches, func(a, b branch) int {
		if len(a.name) != len(b.name) && strings.TrimRight(a.name, "0123456789") == strings.TrimRight(b.name, "0123456789") {
			return len(a.name) - len(b.name) // shard-9 before shard-10
		}
		return strings.Compare(a.name, b.name)
	})
	text := []byte("service\n")
	for k, b := range branches {
		stem, bar := "├─ ", "│  "
		if k == len(branches)-1 {
			stem, bar = "└─ ", "   "
		}
		var lines []string
		if b.about != nil {
			lines = b.about()
		}
		if len(lines) == 0 {
			lines = []string{""}
		}
		text = append(text, strings.TrimRight(stem+b.name+"  "+lines[0], " ")+"\n"...)
		for n, line := range lines[1:] {
			end := "├─ "
			if n == len(lines)-2 {
				end = "└─ "
			}
			text = append(text, bar+end+line+"\n"...)
		}
	}
	return string(text)
}

// Stop ends the system, at once. protoactor only marks itself as stopped; whoever
// spawned actors stops them before. It can be called again, and has no error.
func (s *System) Stop(context.Context) error {
	s.stopOnce.Do(s.actors.Shutdown)
	return nil
}
