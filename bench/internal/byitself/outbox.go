package byitself

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"time"

	"troupe/bench/internal/harness"
	"troupe/bench/process"
)

// senders is how many instances send.
const senders = 1000

// receiver is the other side of all deliveries.
type receiver struct {
	mu      sync.Mutex
	of      map[string]*arrivals // by instance
	arrived int                  // deliveries, each once
	again   int                  // deliveries that arrived before
	fault   error
	changed chan struct{} // has room for one
}

// arrivals is what came of one instance.
type arrivals struct {
	last int // the highest number
	ids  map[int]string
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	var event struct {
		Data struct {
			N  int    `json:"n"`
			Of string `json:"of"`
		} `json:"data"`
	}
	if err := json.NewDecoder(req.Body).Decode(&event); err != nil {
		w.WriteHeader(http.StatusBadRequest) // the server was killed while it wrote
		return
	}
	r.note(event.Data.Of, event.Data.N, req.Header.Get("Webhook-Id"))
}

// note looks at a delivery: it is the next one of its instance, or one that has come before, under the same id.
func (r *receiver) note(of string, n int, id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.of[of]
	if a == nil {
		a = &arrivals{ids: map[int]string{}}
		r.of[of] = a
	}
	before, came := a.ids[n]
	switch {
	case came && before != id:
		r.fault = errors.Join(r.fault, fmt.Errorf("delivery %d of %s came as %q and as %q", n, of, before, id))
	case came && n != a.last:
		r.fault = errors.Join(r.fault, fmt.Errorf("delivery %d of %s came again behind %d", n, of, a.last))
	case came:
		r.again++
	case n != a.last+1:
		r.fault = errors.Join(r.fault, fmt.Errorf("delivery %d of %s came behind %d", n, of, a.last))
		fallthrough
	default:
		a.ids[n], a.last = id, n
		r.arrived++
	}
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// silenceMax is how long nothing may come. NB: a host that was away for long is asked once a minute.
const silenceMax = 3 * time.Minute

// await returns when so many have arrived, or nothing has for silenceMax.
func (r *receiver) await(ctx context.Context, count int) error {
	for {
		r.mu.Lock()
		arrived, fault := r.arrived, r.fault
		r.mu.Unlock()
		if fault != nil || arrived >= count {
			return fault
		}
		select {
		case <-r.changed:
		case <-time.After(silenceMax):
			return fmt.Errorf("%d of %d have arrived, and nothing has for %s", arrived, count, silenceMax)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// runOutbox kills the server while deliveries leave.
func (m *measurement) runOutbox(ctx context.Context) error {
	addr, err := process.FreeAddr()
	if err != nil {
		return err
	}
	settings := fmt.Sprintf("webhooks: {allow: [127.0.0.0/8], endpoints: {sending: {to: {url: 'http://%s/'}}}}\n", addr)
	s, err := m.start(ctx, settings)
	if err != nil {
		return err
	}
	defer func() { s.Stop() }()
	ids, err := s.many(ctx, senders, func(int) string { return `{"workflowId":"sending"}` })
	if err != nil {
		return err
	}
	begun := time.Now()
	each := m.rows / senders // NB: batches run beside each other, and one has all of an instance
	if each == 0 || batchItems%each != 0 || m.rows%senders != 0 {
		return harness.Wrong("-rows is %d times a divisor of %d", senders, batchItems)
	}
	if _, err := s.many(ctx, m.rows, func(i int) string { return event("sending", ids[i/each], "go", i%each+1) }); err != nil {
		return err
	}
	fmt.Fprintf(m.Errs, "%d deliveries wait after %s\n", m.rows, time.Since(begun).Round(time.Millisecond))
	r := &receiver{of: map[string]*arrivals{}, changed: make(chan struct{}, 1)}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: r, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(l) }() // until Close
	defer func() { _ = server.Close() }()
	begun = time.Now()
	var down time.Duration
	for kill := range m.kills {
		if err := r.await(ctx, m.rows*(kill+1)/(m.kills+1)); err != nil {
			return err
		}
		<-time.After(rand.N(50 * time.Millisecond)) //nolint:gosec // no secret
		s.Kill()
		ended := time.Now()
		if _, err := m.restart(ctx, s); err != nil {
			return err
		}
		down += time.Since(ended)
		fmt.Fprintf(m.Errs, "killed after about %d of %d\n", m.rows*(kill+1)/(m.kills+1), m.rows)
	}
	if err := r.await(ctx, m.rows); err != nil {
		return err
	}
	took := time.Since(begun) - down
	m.text.Printf("\n## %d deliveries of %d instances, and %d times kill -9 while they leave\n\n", m.rows, senders, m.kills)
	m.text.Printf("All have arrived, those of each instance in their order and under one id each; %d came twice. While the server ran they left at %.0f a second (8 requests at a time to one host).\n",
		r.again, float64(m.rows)/took.Seconds())
	return nil
}
