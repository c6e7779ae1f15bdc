package serve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"troupe/actors/home"
	"troupe/cmd/internal/clitest"
	"troupe/cmd/internal/homedir"
)

// noted is a part that notes when it is stopped.
type noted struct {
	name string
	log  *[]string
	err  error
}

func (n *noted) Stop(context.Context) error {
	*n.log = append(*n.log, n.name)
	return n.err
}

func TestStack(t *testing.T) {
	var log []string
	broken := errors.New("broken")
	a, b, c := &noted{"a", &log, nil}, &noted{"b", &log, broken}, &noted{"c", &log, nil}
	tests := []struct {
		name string
		push []part
		want string
		err  error
	}{
		{"nothing", nil, "", nil},
		{"the newest is stopped first", []part{a, c}, "c a", nil},
		{"a part that is put on top again moves up", []part{a, c, a}, "a c", nil},
		{"what is below a part that fails is stopped", []part{a, b, c}, "c b a", broken},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			log = nil
			var s stack
			for _, p := range test.push {
				s.push(p)
			}
			err := s.stop(t.Context())
			if got := strings.Join(log, " "); got != test.want || !errors.Is(err, test.err) {
				t.Errorf("got %q, %v, want %q, %v", got, err, test.want, test.err)
			}
			if err := s.stop(t.Context()); err != nil || strings.Join(log, " ") != test.want {
				t.Errorf("a second stop: got %q, %v", log, err)
			}
		})
	}
}

// startOrder is what start leaves on the stack, the top last.
const startOrder = "disk.Disk persistence.Store identity.Service actors.System workflow.Router repository.Service template.Service " +
	"formportal.Portal admin.Server admin.Operations home.Watcher provider.Client gateway.Server"

// names says what is on a stack, the top last.
func (s *stack) names() string {
	var names []string
	for _, p := range s.parts {
		name := fmt.Sprintf("%T", p)
		if c, ok := p.(closing); ok {
			name = fmt.Sprintf("%T", c.Closer)
		}
		names = append(names, strings.TrimPrefix(name, "*"))
	}
	return strings.Join(names, " ")
}

// TestEveryPartStopsTwice, in the order that start shows, and none leaves a
// goroutine.
func TestEveryPartStopsTwice(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	s := newService(clitest.ExampleHome(t))
	s.config.Provider.Issuer, s.config.Provider.ClientID = "https://login.example.com", "troupe"
	if err := s.start(t.Context()); err != nil {
		t.Fatal(errors.Join(err, s.stop()))
	}
	parts := slices.Clone(s.started.parts)
	if got := s.started.names(); got != startOrder {
		t.Errorf("got the stack\n%s\nwant\n%s", got, startOrder)
	}
	for _, when := range []string{"stop", "stop again"} {
		if err := s.stop(); err != nil {
			t.Errorf("%s: %v", when, err)
		}
	}
	for _, p := range parts {
		if err := p.Stop(t.Context()); err != nil {
			t.Errorf("%T: a second Stop: %v", p, err)
		}
	}
}

// TestStopBeforeStart is for the watcher, which is made before it is started, and for
// all parts together. That of the gateway is in its package.
func TestStopBeforeStart(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	dir := clitest.ExampleHome(t)
	w, err := home.NewWatcher(home.WatchOptions{Dir: dir, Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Stop(t.Context()), w.Stop(t.Context())); err != nil {
		t.Errorf("a watcher: %v", err)
	}
	w.Start() // starts nothing that stays, or goleak finds it
	if err := newService(dir).stop(); err != nil {
		t.Errorf("a service that was not started: %v", err)
	}
}

// TestAStartThatFailsStopsWhatWasStarted, at every step: no goroutine is left, and
// the home can be served afterwards.
func TestAStartThatFailsStopsWhatWasStarted(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	order := strings.Fields("disk.Disk gateway.Server persistence.Store home.Watcher identity.Service " +
		"actors.System workflow.Router repository.Service template.Service formportal.Portal admin.Server")
	tests := []struct {
		name          string
		breaks, mends func(s *service)
		started       int // how many of them had been
	}{
		{
			"the port", func(s *service) { s.config.Gateway.Addr = taken.Addr().String() },
			func(s *service) { s.config.Gateway.Addr = "127.0.0.1:0" }, 1,
		},
		{"the store", func(s *service) { s.config.Store.Shards = -1 }, func(s *service) { s.config.Store.Shards = 0 }, 2},
		{
			"the home", func(s *service) { clitest.PutFile(t, s.config.Home, "forms/plain.yaml", faultyForm) },
			func(s *service) { clitest.RemoveFile(t, s.config.Home, "forms/plain.yaml") }, 5,
		},
		{"the router", func(s *service) { s.config.Workflow.QueriesMax = -1 }, func(s *service) { s.config.Workflow.QueriesMax = 0 }, 6},
		{
			"the socket", func(s *service) { clitest.PutFile(t, s.config.Home, homedir.AdminSocket, "no socket") },
			func(s *service) { clitest.RemoveFile(t, s.config.Home, homedir.AdminSocket) }, 10,
		},
		{
			"the operations listener", func(s *service) { s.config.Admin = taken.Addr().String() },
			func(s *service) { s.config.Admin = "" }, 11,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
			s := newService(clitest.ExampleHome(t))
			test.breaks(s)
			if err := s.start(t.Context()); err == nil {
				t.Error("start: got no error")
			}
			if got, want := s.started.names(), strings.Join(order[:test.started], " "); got != want {
				t.Errorf("started: got %s, want %s", got, want)
			}
			if err := s.stop(); err != nil {
				t.Errorf("stop: %v", err)
			}
			test.mends(s)
			again := &service{config: s.config, log: s.log}
			if err := errors.Join(again.start(t.Context()), again.stop()); err != nil {
				t.Errorf("the next start: %v", err)
			}
		})
	}
}

// TestAPartThatIsStuckDoesNotKeepStop: stop ends with an error when its time is
// over.
func TestAPartThatIsStuckDoesNotKeepStop(t *testing.T) {
	dir := t.TempDir()
	clitest.PutFile(t, dir, home.IdentityFile, "")
	called, release := make(chan struct{}, 100), make(chan struct{})
	w, err := home.NewWatcher(home.WatchOptions{
		Dir: dir, Settle: time.Nanosecond, Log: zerolog.Nop(),
		Access: func() bool { called <- struct{}{}; <-release; return false }, Definitions: func() bool { return false },
	})
	if err != nil {
		t.Fatal(err)
	}
	w.Start()
	clitest.PutFile(t, dir, home.IdentityFile, "# changed\n")
	<-called
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.Stop(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the end of the context", err)
	}
	close(release)
	if err := w.Stop(t.Context()); err != nil {
		t.Errorf("once it goes on: %v", err)
	}
}
