package actors

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	cmap "github.com/orcaman/concurrent-map"
	"github.com/rs/zerolog"

	"troupe/actors/internal/mailbox"
)

// System is the protoactor system that all actors of one process share. Its root is the actor "service", whose children
// Spawn starts.
type System struct {
	actors   *actor.ActorSystem
	log      zerolog.Logger
	service  *actor.PID
	mailbox  mailbox.Mailbox // of service
	stopOnce sync.Once       // protoactor panics at a second shutdown

	mu       sync.Mutex
	branches map[string]*branch // guarded by mu; the children of service by their addresses

	deadLetters, restarts atomic.Int64
}

type branch struct {
	kind, name string
	mailbox    *mailbox.Mailbox
	about      func(*Branch)
	restarts   atomic.Int64
}

// fewMaps makes systems small. protoactor keeps its actors in 1,024 maps, each with a lock of its own; each would be 32 more, and all of them,
// empty, would be 3 MB.
var fewMaps = sync.OnceFunc(func() { cmap.SHARD_COUNT = 1 })

// NewSystem starts an actor system that logs to log. protoactor's own metrics stay off: they register on global state.
func NewSystem(log zerolog.Logger) *System {
	fewMaps()
	logger := slog.New(zerolog.NewSlogHandler(log.Level(max(log.GetLevel(), zerolog.WarnLevel))))
	s := &System{log: log, branches: map[string]*branch{}, actors: actor.NewActorSystem(
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return logger }),
		actor.WithDeadLetterRequestLogging(false),
		// NB: a goroutine waits that long after a message to an actor that has ended, which is what the last word to a
		// worker can be.
		actor.WithDeadLetterThrottleInterval(time.Millisecond),
	)}
	s.actors.EventStream.Subscribe(s.noteDeadLetter)
	props := actor.PropsFromFunc(s.receive, actor.WithMailbox(func() actor.Mailbox { return &s.mailbox }), actor.WithSupervisor(Supervise(s.resume)))
	s.service, _ = s.actors.Root.SpawnNamed(props, "service") // the name is free
	return s
}

// Root returns the context that sends to actors.
func (s *System) Root() *actor.RootContext { return s.actors.Root }

// Process returns what messages to an actor are given to. It is for a sender who knows that the actor has not ended: there are no
// dead letters on this way.
func (s *System) Process(pid *actor.PID) actor.Process {
	p, _ := s.actors.ProcessRegistry.Get(pid)
	return p
}

// Props returns the properties of actors that take little memory; who sends to an idle one runs it meanwhile. They may
// be shared: receive gets the messages of all, and what belongs to one actor comes with the message.
func Props(receive actor.ReceiveFunc) *actor.Props {
	return actor.PropsFromFunc(receive, actor.WithMailbox(func() actor.Mailbox { return new(mailbox.Mailbox) }))
}

// Supervise decides what happens to a child that has panicked. It must have children restart, resume or stop it: its
// mailbox stands still until then. It is called between two messages of the parent.
type Supervise func(children actor.Supervisor, who *actor.PID, failed *actor.RestartStatistics, reason, message any)

// HandleFailure implements actor.SupervisorStrategy. NB: protoactor's own stops an actor without a word after so many restarts.
func (f Supervise) HandleFailure(_ *actor.ActorSystem, children actor.Supervisor, who *actor.PID, failed *actor.RestartStatistics, reason, message any) {
	f(children, who, failed, reason, message)
}

type spawn struct {
	*branch
	props *actor.Props
	done  chan *actor.PID
}

// Spawn starts a child of service. supervise is the rule for its own children that panic, and about says more of it in the tree.
func (s *System) Spawn(kind, name string, receive actor.ReceiveFunc, supervise Supervise, about func(*Branch)) *actor.PID {
	b := &branch{kind: kind, name: name, mailbox: new(mailbox.Mailbox), about: about}
	props := actor.PropsFromFunc(receive, actor.WithMailbox(func() actor.Mailbox { return b.mailbox }), actor.WithSupervisor(supervise))
	m := spawn{b, props, make(chan *actor.PID, 1)}
	s.actors.Root.Send(s.service, m)
	return <-m.done
}

func (s *System) receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case spawn:
		pid, err := ctx.SpawnNamed(m.props, m.name)
		for n := 2; err != nil; n++ { // the one before has not ended yet
			pid, err = ctx.SpawnNamed(m.props, fmt.Sprintf("%s.%d", m.name, n))
		}
		s.mu.Lock()
		s.branches[pid.Id] = m.branch
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
	s.mu.Lock()
	if b := s.branches[who.Id]; b != nil {
		b.restarts.Add(1)
	}
	s.mu.Unlock()
	s.log.Error().Str("actor", who.Id).Str("panic", fmt.Sprint(reason)).Msg("an actor panicked; it goes on")
	children.ResumeChildren(who)
}

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

// Branch is an actor in the tree, or all actors of one kind below another.
type Branch struct {
	// Kind is service, shard, instances, background, supervisor or workers.
	Kind  string  `json:"kind"`
	Name  string  `json:"name"`
	Shard *uint16 `json:"shard,omitempty"`
	// State is Running, or what else is to be said.
	State string `json:"state"`
	Count int    `json:"count"`
	// Mailbox is how many messages wait; of instances and workers how many calls are not answered.
	Mailbox  int      `json:"mailbox"`
	Restarts int64    `json:"restarts"`
	Children []Branch `json:"children,omitempty"`
}

// Running is the state of an actor of which there is nothing to say.
const Running = "running"

// Tree is the tree of the actors that there are now. Instances and workers are counted.
func (s *System) Tree() Branch {
	s.mu.Lock()
	branches := slices.Collect(maps.Values(s.branches))
	s.mu.Unlock()
	root := Branch{Kind: "service", Name: "service", State: Running, Count: 1, Mailbox: s.mailbox.UserMessageCount()}
	for _, b := range branches {
		child := Branch{Kind: b.kind, Name: b.name, State: Running, Count: 1, Mailbox: b.mailbox.UserMessageCount(), Restarts: b.restarts.Load()}
		b.about(&child)
		root.Children = append(root.Children, child)
	}
	slices.SortFunc(root.Children, func(a, b Branch) int {
		if a.Shard != nil && b.Shard != nil {
			return int(*a.Shard) - int(*b.Shard)
		}
		return strings.Compare(a.Name, b.Name)
	})
	return root
}

// Stop ends the system, at once. protoactor only marks itself as stopped; anyone who spawned actors stops them before. It
// can be called again, and has no error.
func (s *System) Stop(context.Context) error {
	s.stopOnce.Do(s.actors.Shutdown)
	return nil
}
