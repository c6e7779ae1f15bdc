package byitself

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"troupe/bench/internal/harness"
	"troupe/gateway/client"
)

// measurement is one run of the command.
type measurement struct {
	*harness.Harness
	pending, storm, rows, children, tasks, kills int

	text harness.Table // of the record
}

// definitions are the workflows of all homes: one that waits for a time that it is given, one that waits for nothing, one
// that sends, and one that has a child until that answers.
var definitions = map[string]string{
	"waiting.yaml": "id: waiting\nstateMachines: {main: {initial: open, states: {open: {after: {'${svcPublic.due}': late}, on: {go: late}}, late: {type: final}}}}\n",
	"resting.yaml": "id: resting\nstateMachines: {main: {initial: open, states: {open: {on: {go: {}, end: late}}, late: {type: final}}}}\n",
	"sending.yaml": "id: sending\nwebhooks: {to: {retry: {limit: 100, delay: PT1S, maxDelay: PT2S}}}\n" +
		"stateMachines: {main: {initial: open, states: {open: {on: {go: {actions: [{webhook: {to: to, body: {n: '${event.data.n}', of: '${instance.id}'}}}]}, end: late}}, late: {type: final}}}}\n",
	"asking.yaml": "id: asking\nstateMachines: {main: {initial: open, states: {open: {invoke: {workflow: answering, data: {svcPublic: {of: '${instance.id}'}}, onDone: heard}, on: {leave: left}}, " +
		"heard: {type: final}, left: {type: final}}}}\n",
	"deciding.yaml": "id: deciding\nstateMachines: {main: {initial: open, states: {open: {task: {title: 'Decide ${svcPublic.n}', due: '${svcPublic.due}'}, " +
		"on: {go: {target: done, allow: {roles: [clerk]}}}}, done: {type: final}}}}\n",
	"answering.yaml": "id: answering\nstateMachines: {main: {initial: open, states: {open: {after: {PT3S: answered}}, answered: {type: final}}}}\n",
}

// user is who may do everything.
const user = "ann"

// server is a server on a home of its own.
type server struct {
	*harness.Server
	*client.Client
}

// start starts a server on a new home.
func (m *measurement) start(ctx context.Context, settings string) (*server, error) {
	home, err := os.MkdirTemp(m.Dir, "home")
	if err != nil {
		return nil, err
	}
	files := map[string]string{"identity.yaml": "roles: [{id: clerk, privileges: [mod-workflows]}, {id: a}, {id: b}, {id: c}, {id: d}]\nusers: [{id: ann, roles: [clerk, a, b, c, d]}]\n", "troupe.yaml": settings}
	for name, text := range definitions {
		files[filepath.Join("workflows", name)] = text
	}
	for name, text := range files {
		path := filepath.Join(home, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			return nil, err
		}
	}
	s := &server{}
	if s.Server, err = harness.Serve(ctx, m.Program, home, []string{user}, args...); err != nil {
		return nil, err
	}
	return s, s.connect()
}

var args = []string{"--log-level", "warn", "--commit-wait-max", "2m"}

func (s *server) connect() (err error) {
	s.Client, err = client.New(client.Options{Address: "http://" + s.Addr, Token: s.Tokens[user], RetryMax: 50, CallMax: 5 * time.Minute})
	return err
}

// restart starts it again after its end, and says how long that took.
func (m *measurement) restart(ctx context.Context, s *server) (ready time.Duration, err error) {
	begun := time.Now()
	if err := s.Start(ctx, m.Program, args...); err != nil {
		return 0, err
	}
	return time.Since(begun), s.connect()
}
