package actors

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"

	"troupe/actors/internal/mailbox"
)

// System is the protoactor system that all actors of one process share.
type System struct {
	actors   *actor.ActorSystem
	stopOnce sync.Once // protoactor panics at a second shutdown
}

// NewSystem starts an actor system that logs to log. protoactor's own metrics
// stay off: they register on global state.
func NewSystem(log zerolog.Logger) *System {
	logger := slog.New(zerolog.NewSlogHandler(log.Level(max(log.GetLevel(), zerolog.WarnLevel))))
	return &System{actors: actor.NewActorSystem(
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return logger }),
		actor.WithDeadLetterRequestLogging(false),
		// NB: a goroutine waits that long after a message to an actor that has
		// ended, which is what the last word to a worker can be.
		actor.WithDeadLetterThrottleInterval(time.Millisecond),
	)}
}

// Root returns the context that spawns actors and sends to them.
func (s *System) Root() *actor.RootContext { return s.actors.Root }

// PropsOfMany returns the properties that all actors of one kind share, of which there
// are many: they take little memory, and who sends to an idle one runs it meanwhile. receive
// gets the messages of all; what belongs to one actor comes with the message.
func (s *System) PropsOfMany(receive actor.ReceiveFunc) *actor.Props {
	return actor.PropsFromFunc(receive, actor.WithMailbox(func() actor.Mailbox { return new(mailbox.Mailbox) }))
}

// Stop ends the system, at once. protoactor only marks itself as stopped; whoever
// spawned actors stops them before. It can be called again, and has no error.
func (s *System) Stop(context.Context) error {
	s.stopOnce.Do(s.actors.Shutdown)
	return nil
}
