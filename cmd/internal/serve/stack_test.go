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
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
			got := strings.Join(log, " ")
			assert.True(t, got == test.want && errors.Is(err, test.err), "got %q, %v, want %q, %v", got, err, test.want, test.err)
			err = s.stop(t.Context())
			assert.True(t, err == nil && strings.Join(log, " ") == test.want, "a second stop: got %q, %v", log, err)
		})
	}
}

// startOrder is what start leaves on the stack, the top last.
const startOrder = "disk.Disk persistence.Store audit.Log audit.Identities actors.System workflow.Router export.Service repository.Service template.Service " +
	"formportal.Portal admin.Server admin.Operations home.Watcher metric.Hour provider.Client gateway.Server"

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
	s := newService(bareHome(t))
	s.config.Provider.Issuer, s.config.Provider.ClientID = "https://login.example.com", "troupe"
	if err := s.start(t.Context()); err != nil {
		t.Fatal(errors.Join(err, s.stop()))
	}
	parts := slices.Clone(s.started.parts)
	assert.Equal(t, startOrder, s.started.names(), "got the stack")
	for _, when := range []string{"stop", "stop again"} {
		assert.NoError(t, s.stop(), when)
	}
	for _, p := range parts {
		assert.NoError(t, p.Stop(t.Context()), "%T: a second Stop", p)
	}
}

// TestStopBeforeStart is for the watcher, which is made before it is started, and for
// all parts together. That of the gateway is in its package.
func TestStopBeforeStart(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	dir := bareHome(t)
	w, err := home.NewWatcher(home.WatchOptions{Dir: dir, Log: zerolog.Nop()})
	require.NoError(t, err)
	assert.NoError(t, errors.Join(w.Stop(t.Context()), w.Stop(t.Context())), "a watcher")
	w.Start() // starts nothing that stays, or goleak finds it
	assert.NoError(t, newService(dir).stop(), "a service that was not started")
}

// TestAStartThatFailsStopsWhatWasStarted, at every step: no goroutine is left, and
// the home can be served afterwards.
func TestAStartThatFailsStopsWhatWasStarted(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = taken.Close() }()
	order := strings.Fields("disk.Disk gateway.Server persistence.Store audit.Log home.Watcher audit.Identities " +
		"actors.System workflow.Router export.Service repository.Service template.Service formportal.Portal admin.Server")
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
			func(s *service) { clitest.RemoveFile(t, s.config.Home, "forms/plain.yaml") }, 6,
		},
		{"the router", func(s *service) { s.config.Workflow.QueriesMax = -1 }, func(s *service) { s.config.Workflow.QueriesMax = 0 }, 7},
		{
			"the socket", func(s *service) { clitest.PutFile(t, s.config.Home, homedir.AdminSocket, "no socket") },
			func(s *service) { clitest.RemoveFile(t, s.config.Home, homedir.AdminSocket) }, 12,
		},
		{
			"the operations listener", func(s *service) { s.config.Admin = taken.Addr().String() },
			func(s *service) { s.config.Admin = "" }, 13,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
			s := newService(bareHome(t))
			test.breaks(s)
			assert.Error(t, s.start(t.Context()), "start: got no error")
			assert.Equal(t, strings.Join(order[:test.started], " "), s.started.names(), "started")
			assert.NoError(t, s.stop(), "stop")
			test.mends(s)
			again := &service{config: s.config, log: s.log}
			assert.NoError(t, errors.Join(again.start(t.Context()), again.stop()), "the next start")
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
	require.NoError(t, err)
	w.Start()
	clitest.PutFile(t, dir, home.IdentityFile, "# changed\n")
	<-called
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	assert.ErrorIs(t, w.Stop(ended), context.Canceled)
	close(release)
	assert.NoError(t, w.Stop(t.Context()), "once it goes")
}
