package identity

import (
	"bytes"
	"context"
	"maps"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"

	"troupe/actors/failure"
	"troupe/actors/identity/password"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memory is a ledger that can hold back its confirmations, fail and crash.
type memory struct {
	mu      sync.Mutex
	durable map[string][]byte // by kind and id
	waiting []pendingAppend
	hold    bool  // keep appends waiting until confirm
	fail    error // answer of every append
	lie     bool  // the planted bug: confirm what is not durable
	appends int
}

type pendingAppend struct {
	rows []row
	done func(error)
	fail error // its answer
}

func newMemory() *memory { return &memory{durable: map[string][]byte{}} }

func (m *memory) append(rows []row, done func(error)) {
	m.mu.Lock()
	m.appends++
	held, fail := m.hold, m.fail
	switch {
	case m.lie:
		m.waiting = append(m.waiting, pendingAppend{rows, func(error) {}, fail})
	case held:
		m.waiting = append(m.waiting, pendingAppend{rows, done, fail})
	case fail == nil:
		m.keep(rows)
	}
	m.mu.Unlock()
	if m.lie || !held {
		done(fail)
	}
}

// keep makes rows durable; m.mu is held.
func (m *memory) keep(rows []row) {
	for _, r := range rows {
		key := string([]byte{byte(r.kind)}) + r.id
		if r.value == nil {
			delete(m.durable, key)
		} else {
			m.durable[key] = r.value
		}
	}
}

func (m *memory) scan(kind Kind, visit func(id string, row []byte)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		return m.fail
	}
	for key, value := range m.durable {
		if Kind(key[0]) == kind {
			visit(key[1:], value)
		}
	}
	return nil
}

func (m *memory) holdBack() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.hold = true
}

func (m *memory) failWith(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fail = err
}

// confirm makes everything that waits durable, but for what was to fail, in order, and
// holds nothing back any more.
func (m *memory) confirm() {
	m.mu.Lock()
	waiting := m.waiting
	m.waiting, m.hold = nil, false
	for _, p := range waiting {
		if p.fail == nil {
			m.keep(p.rows)
		}
	}
	m.mu.Unlock()
	for _, p := range waiting {
		p.done(p.fail)
	}
}

// crash returns what is found after a crash: all that is durable and the first
// survivors of the appends that wait.
func (m *memory) crash(survivors int) *memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	after := newMemory()
	after.durable = maps.Clone(m.durable)
	for _, p := range m.waiting[:min(survivors, len(m.waiting))] {
		if p.fail == nil {
			after.keep(p.rows)
		}
	}
	return after
}

func (m *memory) dump(to *bytes.Buffer) {
	for key, row := range m.durable {
		to.WriteString(key)
		to.Write(row)
	}
}

const staff = `
roles:
  - {id: clerk, name: Clerk, privileges: [mod-form-portal, mod-form]}
  - {id: boss, name: Boss, privileges: [mod-workflows, mod-form]}
users:
  - {id: john.doe, name: John Doe, roles: [clerk]}
  - {id: mary.major, name: Mary Major, roles: [boss, clerk], privileges: [mod-admin]}
  - {id: gone.girl, name: Gone Girl, roles: [clerk], disabled: true}
`

const staffWithoutJohn = `
users:
  - {id: mary.major, name: Mary Major}
`

const staffJohnDisabled = `
users:
  - {id: john.doe, name: John Doe, disabled: true}
  - {id: mary.major, name: Mary Major}
`

const staffJohnRenamed = `
users:
  - {id: john.smith, name: John Smith}
`

func parse(t testing.TB, src string) *Directory {
	t.Helper()
	d, err := ParseDirectory("identity.yaml", []byte(src))
	if err != nil {
		t.Fatalf("ParseDirectory: %v", err)
	}
	return d
}

// inBubble runs a test with its own time, on a service with the staff above.
// NB: the service's clock is the bubble's.
func inBubble(t *testing.T, l ledger, o Options, test func(t *testing.T, s *Service)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		test(t, open(t, l, o))
	})
}

// cheap is the least that argon2 takes.
var (
	someDay = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	nearby  = netip.MustParseAddr("192.0.2.7")
)

var cheap = password.Cost{MemoryKiB: 8, Passes: 1, Lanes: 1}

func open(t testing.TB, l ledger, o Options) *Service {
	t.Helper()
	if o.Directory == nil {
		o.Directory = parse(t, staff)
	}
	if o.PasswordCost == (password.Cost{}) {
		o.PasswordCost = cheap
	}
	s, err := start(o, l)
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	t.Cleanup(func() { stop(t, s) })
	return s
}

// pass lets time go by, and everything that was to happen meanwhile happen.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func issued(t testing.TB, s *Service, kind Kind, user UserID, expires time.Duration) (string, Credential) {
	t.Helper()
	secret, c, err := s.Create(t.Context(), kind, CreateCredential{User: user, Expires: expires})
	if err != nil {
		t.Fatalf("create %v: %v", kind, err)
	}
	return secret, c
}

func accepts(t *testing.T, s *Service, kind Kind, secret string, user UserID) {
	t.Helper()
	p, err := s.Authenticate(kind, secret)
	assert.True(t, err == nil && p.ID == user, "Authenticate: got %+v, %v, want %s", p, err, user)
}

// refuses checks that a credential is refused, without any detail.
func refuses(t *testing.T, s *Service, kind Kind, secret string) {
	t.Helper()
	p, err := s.Authenticate(kind, secret)
	assert.True(t, p == nil && err == failure.ErrUnauthorized, //nolint:errorlint // the very error, so that no cause can shine through
		"Authenticate: got %+v, %v, want nil and exactly ErrUnauthorized", p, err)
}

func credentialsOf(s *Service, kind Kind) []Credential {
	list, _ := s.Credentials(context.Background(), kind)
	return list
}
