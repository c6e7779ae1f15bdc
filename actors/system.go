package actors

import (
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"
)

// System is the protoactor system that all actors of one process share.
type System struct{ actors *actor.ActorSystem }

// NewSystem starts an actor system that logs to log. protoactor's own metrics
// stay off: they register on global state.
func NewSystem(log zerolog.Logger) *System {
	logger := slog.New(zerolog.NewSlogHandler(log.Level(max(log.GetLevel(), zerolog.WarnLevel))))
	return &System{actor.NewActorSystem(
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return logger }),
		actor.WithDeadLetterRequestLogging(false),
		// NB: a goroutine waits that long after a message to an actor that has
		// ended, which is what the last word to a worker can be.
		actor.WithDeadLetterThrottleInterval(time.Millisecond),
	)}
}

// Root returns the context that spawns actors and sends to them.
func (s *System) Root() *actor.RootContext { return s.actors.Root }

// Stop ends the system. protoactor only marks itself as stopped; whoever
// spawned actors stops them before.
func (s *System) Stop() { s.actors.Shutdown() }
