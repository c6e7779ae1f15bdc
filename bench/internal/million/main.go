// Package million fills a server with a million instances, and measures what depends on their number: events beside a
// small store, starts, and queries (bench/README.md, "Many instances"). The workflow is an order with two declared
// indexes. A window is to be longer than some merges of flushed tables, which come every few seconds.
package million

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"troupe/bench/internal/harness"
	"troupe/bench/load"
	"troupe/bench/process"
	"troupe/gateway/client"
)

// Commands are the measurement.
var Commands = []harness.Command{{Name: "million", About: "a store of a million instances", Run: run}}

type measurement struct {
	*harness.Harness
	instances, small int
	rounds           int
	window           time.Duration

	scenario *load.Scenario
	text     harness.Table // of the record
}

func run(ctx context.Context, h *harness.Harness) error {
	m := &measurement{Harness: h}
	h.Flags.IntVar(&m.instances, "instances", 1_000_000, "how many instances the large store has")
	h.Flags.IntVar(&m.small, "small", 10_000, "how many the small store has that events are compared with")
	h.Flags.IntVar(&m.rounds, "rounds", 5, "how often each figure is measured")
	h.Flags.DurationVar(&m.window, "window", 5*time.Second, "how long events are measured each time")
	if err := h.Parse(""); err != nil {
		return err
	}
	if m.instances < 1 || m.small < 1 || m.rounds < 1 {
		return harness.Wrong("-instances, -small and -rounds are at least 1")
	}
	h.Title = fmt.Sprintf("A store of %d instances", m.instances)
	return h.Measure(ctx, m.run)
}

func (m *measurement) run(ctx context.Context) (string, error) {
	var err error
	if m.scenario, err = load.ParseScenario("scenario.yaml", scenario, func(string) ([]byte, error) { return definition, nil }); err != nil {
		return "", err
	}
	m.scenario.Users[0].Privileges = []string{"mod-workflows"} // who has it is told how a query was answered
	if err := m.Build(ctx); err != nil {
		return "", err
	}
	large, err := m.open(ctx, "large", m.instances)
	if err != nil {
		return "", err
	}
	defer func() { large.Stop() }()
	// NB: before the large store gets events that the small one does not get.
	if err := m.growth(ctx, large); err != nil {
		return "", err
	}
	if err := m.starts(ctx, large); err != nil {
		return "", err
	}
	err = m.queries(ctx, large)
	return m.text.String(), err
}

const clerk = "clerk"

// The workflow, and what the load generator does with instances of its own: each goes there and back, so that the store
// stays as it is but for them.
var (
	//go:embed order.yaml
	definition []byte
	//go:embed scenario.yaml
	scenario []byte
)

// server is a server with its store, and a client of it.
type server struct {
	*process.Process
	program, home string
	token         string
	client        *client.Client // of its last start
}

// open starts a server on a new store, and makes so many instances.
func (m *measurement) open(ctx context.Context, name string, count int) (*server, error) {
	s := &server{program: m.Program, home: filepath.Join(m.Dir, name)}
	if err := m.scenario.WriteHome(s.home); err != nil {
		return nil, err
	}
	p, tokens, err := process.Serve(ctx, s.program, s.home, []string{clerk})
	if err != nil {
		return nil, err
	}
	s.Process, s.token = p, tokens[clerk]
	begun := time.Now()
	if err := errors.Join(s.connect(), s.fill(ctx, count)); err != nil {
		s.Stop()
		return nil, err
	}
	m.text.Printf("\n%d instances were made in %.0f s.\n", count, time.Since(begun).Seconds())
	return s, nil
}

func (s *server) connect() (err error) {
	s.client, err = client.New(client.Options{Address: "http://" + s.Addr, Token: s.token})
	return err
}

// restart starts the server again, and returns how long it took until it was ready, in ms.
func (s *server) restart(ctx context.Context) (ms float64, err error) {
	s.client.Close()
	begun := time.Now()
	p, err := process.Start(ctx, s.home+".log", s.program, "serve", "--home", s.home)
	if err != nil {
		return 0, err
	}
	s.Process = p
	return harness.Milliseconds(time.Since(begun)), s.connect()
}

// inspectedEvery makes one instance in so many an inspected one: what the query by node looks for. One in three is paid.
const inspectedEvery = 10_000

// batchSize is how many instances are made at once.
const batchSize = 1000

// fillers make them beside each other, because one sync serves all writes that wait for it.
const fillers = 4

func (s *server) fill(ctx context.Context, count int) error {
	var faults [fillers]error
	var all sync.WaitGroup
	for k := range fillers {
		all.Go(func() {
			for first := k * batchSize; first < count && faults[k] == nil; first += fillers * batchSize {
				faults[k] = s.fillBatch(ctx, first, min(first+batchSize, count))
			}
		})
	}
	all.Wait()
	return errors.Join(faults[:]...)
}

// fillBatch makes the instances from first to before end.
func (s *server) fillBatch(ctx context.Context, first, end int) error {
	var creates, events []json.RawMessage
	for n := first; n < end; n++ {
		creates = append(creates, fmt.Appendf(nil, `{"workflowId":"order","data":{"svcPublic":%s}}`, public(n)))
	}
	made, err := s.send(ctx, creates)
	if err != nil {
		return err
	}
	for i := range made {
		event := "pay"
		switch n := first + i; {
		case n%inspectedEvery == 0:
			event = "inspect"
		case n%3 != 0:
			continue
		}
		events = append(events, fmt.Appendf(nil, `{"workflowId":"order","instanceId":%q,"event":{"name":%q}}`, made[i].InstanceID, event))
	}
	_, err = s.send(ctx, events)
	return err
}

// send does all items, however often the server is too busy for some of them.
func (s *server) send(ctx context.Context, items []json.RawMessage) (results []client.BatchResult, err error) {
	isShed := func(r client.BatchResult) bool { return load.IsShed(r.Status) }
	key := client.NewKey()
	for again := true; again && err == nil; again = slices.ContainsFunc(results, isShed) && load.Sleep(ctx, time.Second) {
		results, err = s.client.Batch(ctx, client.BatchRequest{Items: items, Key: key})
	}
	for i := range results {
		err = cmp.Or(err, results[i].Err())
	}
	return results, err
}

// public is svcPublic of the n-th instance: 100 orders a customer, due dates spread over a thousand days.
func public(n int) string {
	due := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, n%1000).Format(time.DateOnly)
	return fmt.Sprintf(
		`{"customer":"c-%06d","due":"%s","total":%d,"lines":[{"sku":"A-%03d","count":%d},{"sku":"B-%03d","count":1}],"note":"leave it at the door, please; the bell is broken"}`,
		n/100, due, n%5000, n%250, 1+n%9, n%77)
}
