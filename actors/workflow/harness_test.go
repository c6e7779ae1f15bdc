package workflow

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"troupe/actors"
	"troupe/actors/catalog"
	"troupe/actors/identity"
	"troupe/actors/query"
	"troupe/persistence"
	"troupe/persistence/storetest"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

const leave = `
id: leave
name: Leave
allow:
  create: {roles: [employee]}
  read: {when: 'user.id == svcPublic.by || "manager" in user.roles'}
context: {svcPublic: {by: john}}
events:
  refuse: {unmatched: reject}
  drop: {unmatched: ignore}
stateMachines:
  main:
    initial: draft
    states:
      draft: {on: {submit: review, note: {}, refuse: review, drop: review, grow: {}}}
      review: {on: {approve: {target: approved, allow: {roles: [manager]}}, back: draft, fail: {actions: [{assign: {svcPublic.x: '${1 / 0}'}}]}}}
      approved: {type: final}
`

const order = `
id: order
stateMachines:
  approval: {initial: open, states: {open: {on: {approve: done}}, done: {type: final}}}
  payment: {initial: open, states: {open: {on: {pay: paid}}, paid: {type: final}}}
`

var (
	john = principal("john", []string{"employee"})
	mary = principal("mary", []string{"employee", "manager"})
	eve  = principal("eve", nil)
	root = principal("root", []string{"employee", "manager"}, string(identity.Workflows))
)

func principal(id string, roles []string, privileges ...string) *identity.Principal {
	return &identity.Principal{ID: identity.UserID(id), Roles: roles, Privileges: privileges}
}

// commitWaitMax is the store's of a house: a disk that takes some seconds for one
// sync must not look like one that is stuck.
const commitWaitMax = time.Minute

// house is a router over a store in a temporary folder. It can be stopped and
// started again on the same store.
type house struct {
	t       *testing.T
	dir     string
	disk    *storetest.Disk // the store's, in the place of dir; nil for none
	o       Options
	store   *persistence.Store
	system  *actors.System
	catalog *catalog.Catalog
	book    logBook
	*Router

	mu  sync.Mutex
	now time.Time // guarded by mu; moves on by 1 ms with each look
}

// logBook keeps what the router logs.
type logBook struct {
	mu   sync.Mutex
	text strings.Builder // guarded by mu
}

func (b *logBook) Write(line []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(line)
}

func (b *logBook) count(what string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Count(b.text.String(), what)
}

func newHouse(t *testing.T, o Options) *house {
	return newHouseOn(t, nil, o)
}

func newHouseOn(t *testing.T, disk *storetest.Disk, o Options) *house {
	h := &house{t: t, dir: t.TempDir(), disk: disk, o: o, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	h.start()
	h.publish(leave, order)
	t.Cleanup(h.stop)
	return h
}

func (h *house) start() {
	h.t.Helper()
	var err error
	o := persistence.Options{Log: zerolog.Nop(), CommitWaitMax: commitWaitMax}
	if h.disk == nil {
		h.store, err = persistence.Open(h.dir, o)
	} else {
		o.MemTableBytes = 256 << 10 // each sync of such a disk copies the log: short logs are fast
		h.store, err = h.disk.Open(o)
	}
	if err != nil {
		h.t.Fatal(err)
	}
	parser, err := statemachine.NewParser(statemachine.ParserOptions{})
	if err != nil {
		h.t.Fatal(err)
	}
	if h.catalog, err = catalog.Open(h.store, parser, zerolog.New(&h.book)); err != nil {
		h.t.Fatal(err)
	}
	h.system = actors.NewSystem(zerolog.Nop())
	router := h.o
	if router.ReplyWaitMax == 0 {
		router.ReplyWaitMax = 2 * commitWaitMax
	}
	router.Store, router.System, router.Catalog, router.Log, router.Clock = h.store, h.system, h.catalog, zerolog.New(&h.book), h.clock
	if h.Router, err = Start(router); err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) stop() {
	if h.Router == nil {
		return
	}
	if err := errors.Join(h.Stop(context.Background()), h.system.Stop(context.Background())); err != nil {
		h.t.Error(err)
	}
	if err := h.store.Close(); err != nil {
		h.t.Error(err)
	}
	h.Router = nil
}

func (h *house) restart() { h.t.Helper(); h.stop(); h.start() }

func (h *house) clock() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = h.now.Add(time.Millisecond)
	return h.now
}

func sources(t *testing.T, texts ...string) []catalog.Source {
	t.Helper()
	parser, err := statemachine.NewParser(statemachine.ParserOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var out []catalog.Source
	for i, text := range texts {
		file := fmt.Sprintf("workflows/%d.yaml", i)
		parsed, err := parser.Parse(statemachine.Source{File: file, Text: []byte(text)})
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, catalog.Source{File: file, Text: []byte(text), Parsed: parsed.Definition})
	}
	return out
}

func (h *house) publish(texts ...string) {
	h.t.Helper()
	if err := h.catalog.Publish(sources(h.t, texts...)); err != nil {
		h.t.Fatal(err)
	}
}

// create makes an instance of a workflow and returns its id.
func (h *house) create(who *identity.Principal, workflow, public string) string {
	h.t.Helper()
	r, err := h.Create(h.t.Context(), &CreateRequest{Caller: who, WorkflowID: workflow, Public: value(public)})
	if err != nil {
		h.t.Fatal(err)
	}
	return r.InstanceID
}

func value(text string) data.Value {
	if text == "" {
		return nil
	}
	v, err := data.Clean([]byte(text))
	if err != nil {
		panic(err)
	}
	return v
}

// event is a request with its idempotency key, if any.
func event(who *identity.Principal, workflow, id, name, body, key string) *EventRequest {
	r := &EventRequest{Caller: who, WorkflowID: workflow, InstanceID: id, Name: name, Data: value(body), WithHistory: true}
	if key != "" {
		r.Retry = Retry{Key: key, Fingerprint: sha256.Sum256([]byte(name + body))}
	}
	return r
}

func (h *house) send(who *identity.Principal, workflow, id, name, body, key string) (*Reply, error) {
	return h.Send(h.t.Context(), event(who, workflow, id, name, body, key))
}

func (h *house) mustSend(who *identity.Principal, workflow, id, name, body, key string) *Reply {
	h.t.Helper()
	r, err := h.send(who, workflow, id, name, body, key)
	if err != nil {
		h.t.Fatal(err)
	}
	return r
}

func (h *house) load(who *identity.Principal, workflow, id string) (*Reply, error) {
	return h.Load(h.t.Context(), &LoadRequest{Caller: who, WorkflowID: workflow, InstanceID: id, WithHistory: true})
}

func (h *house) mustLoad(who *identity.Principal, workflow, id string) *Reply {
	h.t.Helper()
	r, err := h.load(who, workflow, id)
	if err != nil {
		h.t.Fatal(err)
	}
	return r
}

// query returns the ids that match, in the order in which they come.
func (h *house) query(who *identity.Principal, workflow, filter string) []string {
	h.t.Helper()
	ids := []string{}
	_, err := h.Query(h.t.Context(), &query.Request{Caller: who, WorkflowID: workflow, Filter: filter}, func(item []byte) error {
		var entry struct {
			ID string `json:"_id"`
		}
		if err := json.Unmarshal(item, &entry); err != nil {
			h.t.Errorf("item %s: %v", item, err)
		}
		ids = append(ids, entry.ID)
		return nil
	})
	if err != nil {
		h.t.Fatal(err)
	}
	if !slices.IsSorted(ids) {
		h.t.Errorf("ids are not in order: %v", ids)
	}
	return ids
}

// await returns when ok is true.
func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	look := time.NewTicker(2 * time.Millisecond)
	defer look.Stop()
	late := time.After(20 * time.Second)
	for !ok() {
		select {
		case <-look.C:
		case <-late:
			t.Fatalf("still waiting: %s", what)
		}
	}
}

// events returns the transition events of a reply's history.
func events(t *testing.T, r *Reply) string {
	t.Helper()
	var record struct {
		History []struct {
			Event string   `json:"transitionEvent"`
			Start []string `json:"startState"`
			End   []string `json:"endState"`
		} `json:"svcHistory"`
	}
	text := r.AppendRecord(nil)
	if err := json.Unmarshal(text, &record); err != nil {
		t.Fatalf("record %s: %v", text, err)
	}
	var names []string
	for i, e := range record.History {
		if i > 0 && !slices.Equal(e.Start, record.History[i-1].End) {
			t.Errorf("entry %d starts at %v, the one before ends at %v", i+1, e.Start, record.History[i-1].End)
		}
		names = append(names, e.Event)
	}
	if int(r.Sequence) != len(names) {
		t.Errorf("sequence %d, %d entries", r.Sequence, len(names))
	}
	return strings.Join(names, ",")
}

// confirmed waits for a commit.
type confirmed chan error

func (c confirmed) Committed(err error) { c <- err }

// slotsHeld is how many slots queries and lists hold.
func (h *house) slotsHeld() int {
	queries, lists := h.queries.Open()
	return queries + lists
}
