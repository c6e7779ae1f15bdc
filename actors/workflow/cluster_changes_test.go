package workflow_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"troupe/actors/changefeed"
	"troupe/actors/message"
	"troupe/actors/watch"
	"troupe/actors/workflow"
)

// feedReader follows the changes of stock at any node.
type feedReader struct {
	c     *cluster
	r     *rand.Rand
	since string
	seen  map[string]uint64 // by instance, the last entry in order
}

// read asks one node for a page, and holds that it leaves no entry out.
func (f *feedReader) read() (n int, err error) {
	var page *changefeed.Page
	err = f.c.ask(f.r, func(router *workflow.Router) error {
		var err error
		page, err = router.Changes.Changes(context.Background(), &changefeed.Request{Caller: boss, WorkflowID: "stock", Since: f.since, Limit: 1 + f.r.IntN(50)})
		return err
	})
	if err != nil {
		return 0, err
	}
	of := map[string]uint64{}
	for _, e := range page.Changes {
		before := max(of[e.Name], f.seen[e.Name])
		if of[e.Name] == 0 && e.Sequence <= before {
			before = e.Sequence - 1 // it comes once more
		}
		if e.Sequence != before+1 && e.Sequence > f.seen[e.Name] {
			return 0, fmt.Errorf("entry %d of %s comes behind entry %d", e.Sequence, e.Name, before)
		}
		of[e.Name] = e.Sequence
	}
	if f.r.IntN(5) == 0 {
		return len(page.Changes), nil // it is cut off, and asks once more
	}
	for id, sequence := range of {
		f.seen[id] = max(f.seen[id], sequence)
	}
	f.since = page.Next
	return len(page.Changes), nil
}

// TestAReaderOfAnyNodeMissesNothing holds persistence/PROMISES.md, "P31": while nodes lose power and links, and lead one
// after the other; the same for streams, which break all the time.
func TestAReaderOfAnyNodeMissesNothing(t *testing.T) {
	rounds := rounds(2, 3, 6)
	for seed := range *seeds {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t)
			r := rand.New(rand.NewPCG(seed, 31))
			instances := make([]string, clusterInstances)
			for i := range instances {
				instances[i] = c.create(r, fmt.Sprint("first-", i))
			}
			stop := make(chan struct{})
			var writing, reading sync.WaitGroup
			for g := range clusterClients {
				r := rand.New(rand.NewPCG(seed, uint64(10+g)))
				writing.Go(func() {
					for n := 0; ; n++ {
						select {
						case <-stop:
							return
						default:
							c.set(r, instances[r.IntN(len(instances))], fmt.Sprint(g, "-", n))
							c.pass(time.Duration(r.IntN(20)) * time.Millisecond)
						}
					}
				})
			}
			over := make(chan struct{})
			f := &feedReader{c: c, r: rand.New(rand.NewPCG(seed, 50)), since: "0", seen: map[string]uint64{}}
			s := &streamReader{c: c, r: rand.New(rand.NewPCG(seed, 51)), seen: map[string]uint64{}}
			reading.Go(func() { f.follow(over) })
			reading.Go(func() { s.follow(over) })
			for range rounds {
				c.fault(r)
			}
			close(stop)
			writing.Wait()
			c.pass(10 * time.Second)
			close(over)
			reading.Wait()
			for quiet := 0; quiet < 10; quiet++ {
				n, err := f.read()
				if c.must(err); n > 0 {
					quiet = 0
				}
			}
			s.listen(5 * time.Second)
			entries := uint64(0)
			for _, id := range instances {
				var have uint64
				c.must(c.ask(r, func(router *workflow.Router) error {
					reply, err := router.Load(context.Background(), &message.Load{Caller: boss, WorkflowID: "stock", InstanceID: id})
					if err == nil {
						have = reply.Sequence
					}
					return err
				}))
				assert.True(t, f.seen[id] == have && (!s.began || s.seen[id] == have), "%v %v %v %v %v", seed, id, have, f.seen[id], s.seen[id])
				entries += have
			}
			assert.True(t, s.began && entries >= uint64(20*rounds), "seed %d: only %d entries, a stream began: %v", seed, entries, s.began)
			for _, n := range c.nodes {
				n.stop()
			}
			t.Logf("seed %d: %d entries", seed, entries)
		})
	}
}

func (f *feedReader) follow(over <-chan struct{}) {
	for {
		select {
		case <-over:
			return
		default:
		}
		_, err := f.read()
		if !assert.NoError(f.c.t, err) {
			return
		}
		f.c.pass(time.Duration(f.r.IntN(100)) * time.Millisecond)
	}
}

// streamReader watches stock at one node after the other.
type streamReader struct {
	c     *cluster
	r     *rand.Rand
	began bool
	place string
	seen  map[string]uint64
}

func (s *streamReader) follow(over <-chan struct{}) {
	for {
		select {
		case <-over:
			return
		default:
			s.listen(time.Duration(1+s.r.IntN(800)) * time.Millisecond)
		}
	}
}

// listen watches at some node for a while.
func (s *streamReader) listen(d time.Duration) {
	s.c.mu.Lock()
	router := s.c.nodes[s.r.IntN(clusterNodes)].router
	s.c.mu.Unlock()
	if router == nil {
		s.c.pass(100 * time.Millisecond)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	err := router.Watches.Watch(ctx, &watch.Request{Caller: boss, WorkflowID: "stock", LastEventID: s.place}, func(e watch.Event) error {
		switch e.Kind {
		case watch.Lost:
			s.c.t.Errorf("a stream behind %q has lost entries", s.place)
		case watch.Entry:
			id, _ := value(string(e.Data)).Lookup("instanceId")
			text, _ := value(string(e.Data)).Lookup("sequence")
			var sequence uint64
			_, _ = fmt.Sscan(string(text), &sequence)
			have, known := s.seen[id.Text()]
			assert.False(s.c.t, known && sequence > have+1, "entry %d of %s comes behind entry %d", sequence, id.Text(), have)
			s.seen[id.Text()] = max(s.seen[id.Text()], sequence)
		case watch.Opened:
			s.began = true
		}
		if e.ID != "" {
			s.place = e.ID
		}
		return nil
	})
	if err != nil {
		s.c.pass(10 * time.Millisecond)
	}
}
