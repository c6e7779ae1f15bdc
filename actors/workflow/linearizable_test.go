package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/actors/message"
	"troupe/actors/workflow"
	"troupe/persistence/storetest"
)

// operation is what porcupine knows of a request: an event, which adds an entry to the history and sets a member of the data, or
// a look at both.
type operation struct {
	instance string
	sets     string // JSON; empty: it is a look
}

// glance is what an answer shows of an instance.
type glance struct {
	entries uint64
	a       string // JSON
}

// instanceModel is an instance of "stock" as a register that counts.
var instanceModel = porcupine.Model{
	Partition: func(history []porcupine.Operation) (parts [][]porcupine.Operation) {
		of := map[string][]porcupine.Operation{}
		for _, op := range history {
			id := op.Input.(operation).instance
			of[id] = append(of[id], op)
		}
		for _, part := range of {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() any { return glance{1, "0"} }, // the create
	Step: func(state, input, output any) (bool, any) {
		now := state.(glance)
		if sets := input.(operation).sets; sets != "" {
			now = glance{now.entries + 1, sets}
		}
		return now == output.(glance), now
	},
}

// instances are those of a router, or of one that does something wrong.
type instances interface {
	Send(ctx context.Context, e *message.Event) (*message.Reply, error)
	Load(ctx context.Context, l *message.Load) (*message.Reply, error)
}

// ask carries the operation out. A repeated event has the same key.
func (o operation) ask(at instances, key string) (glance, error) {
	var reply *message.Reply
	var err error
	if o.sets != "" {
		reply, err = at.Send(context.Background(), event(boss, "stock", o.instance, "set", fmt.Sprintf(`{"a":%s}`, o.sets), key))
	} else {
		reply, err = at.Load(context.Background(), &message.Load{Caller: boss, WorkflowID: "stock", InstanceID: o.instance})
	}
	if err != nil {
		return glance{}, err
	}
	a, _ := reply.Public.Lookup("a")
	return glance{reply.Sequence, string(a)}, nil
}

// killable is a node alone whose power can fail: it goes on with the disk that is left.
type killable struct {
	*harness
	// moments counts the begins and ends of requests: virtual time would stand still, and everything be at once.
	moments atomic.Int64

	mu     sync.Mutex
	life   int              // how often the power has failed
	router *workflow.Router // nil while it is down
	lost   int              // answers that came too late
	record []porcupine.Operation
}

func (k *killable) at() (router *workflow.Router, life int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.router, k.life
}

// kill cuts the power while commits hang. What the old life answers from then on reaches nobody: its disk is not the one
// that is left.
func (k *killable) kill() {
	k.Disk.Hold()
	<-time.After(20 * time.Millisecond)
	k.mu.Lock()
	k.life++
	k.router = nil
	k.mu.Unlock()
	left := k.Disk.AfterCrash()
	k.Disk.Release()
	k.End()
	k.Disk = left
	k.Begin()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.router = k.Router.Router
}

// hang has the disk hang: for so long that the store refuses what comes, if for is long.
func (k *killable) hang(d time.Duration) {
	k.Disk.Hold()
	<-time.After(d)
	k.Disk.Release()
}

// do carries an operation out, however often it has to ask, and notes what came.
func (k *killable) do(client int, o operation, key string, through func(instances) instances) {
	called := k.moments.Add(1)
	for {
		router, life := k.at()
		if router != nil {
			got, err := o.ask(through(router), key)
			if _, now := k.at(); now != life {
				err = k.lose()
			}
			switch {
			case err == nil:
				k.mu.Lock()
				defer k.mu.Unlock()
				k.record = append(k.record, porcupine.Operation{ClientId: client, Input: o, Output: got, Call: called, Return: k.moments.Add(1)})
				return
			case !errors.Is(err, failure.ErrUnavailable) && !errors.Is(err, failure.ErrBusy) && !errors.Is(err, failure.ErrOutcomeUnknown):
				assert.NoError(k.t, err)
				return
			}
		}
		<-time.After(5 * time.Millisecond)
	}
}

// lose notes an answer that the power failure came before.
func (k *killable) lose() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.lost++
	return failure.ErrOutcomeUnknown
}

func itself(at instances) instances { return at }

// TestInstancesAreLinearizable holds persistence/PROMISES.md, "P8", for a node that stands alone. That answers are lost
// shows persistence/PROMISES.md, "F24": the disk hangs in later lives, too.
func TestInstancesAreLinearizable(t *testing.T) {
	for seed := range *seeds {
		assert.Equal(t, porcupine.Ok, linearizable(t, seed, rounds(1, 2, 10), itself), "seed %d", seed)
	}
}

// TestWhatIsNotLinearizableIsFound is the control: three mistakes, each planted into the last four operations on each
// instance, which nobody else is beside.
func TestWhatIsNotLinearizableIsFound(t *testing.T) {
	for name, mistake := range map[string]func(instances) instances{
		"double application": func(at instances) instances { return doubling{at} },
		"stale read":         func(at instances) instances { return &stale{instances: at} },
		"lost order":         func(at instances) instances { return &swapping{instances: at} },
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, porcupine.Illegal, linearizable(t, 0, 1, mistake))
		})
	}
}

// doubling applies each event once more, and answers as if it had not.
type doubling struct{ instances }

func (d doubling) Send(ctx context.Context, e *message.Event) (*message.Reply, error) {
	reply, err := d.instances.Send(ctx, e)
	if err == nil {
		again := *e
		again.Retry = message.Retry{}
		_, err = d.instances.Send(ctx, &again)
	}
	return reply, err
}

// stale answers every look as the first one.
type stale struct {
	instances
	first *message.Reply
}

func (s *stale) Load(ctx context.Context, l *message.Load) (reply *message.Reply, err error) {
	if s.first == nil {
		s.first, err = s.instances.Load(ctx, l)
	}
	return s.first, err
}

// swapping applies the first event behind the second, and answers as if it had not.
type swapping struct {
	instances
	before *message.Reply
	held   *message.Event
}

func (s *swapping) Load(ctx context.Context, l *message.Load) (reply *message.Reply, err error) {
	s.before, err = s.instances.Load(ctx, l)
	return s.before, err
}

func (s *swapping) Send(ctx context.Context, e *message.Event) (*message.Reply, error) {
	answer := *s.before
	answer.Sequence, answer.Public = answer.Sequence+1, e.Data
	if s.held == nil {
		s.held = e
		return &answer, nil
	}
	answer.Sequence++
	if _, err := s.instances.Send(ctx, e); err != nil {
		return nil, err
	}
	_, err := s.instances.Send(ctx, s.held)
	return &answer, err
}

// linearizable has clients send and look while the node loses its power, has its instances fall asleep and wake, and its
// disk hang. Then, alone, it looks at each instance, sends it two events, and looks again, through what may do something
// wrong. It returns what porcupine says of all that was seen.
func linearizable(t *testing.T, seed uint64, rounds int, through func(instances) instances) (result porcupine.CheckResult) {
	synctest.Test(t, func(t *testing.T) {
		k := &killable{harness: startOn(t, storetest.NewDisk(), workflow.Options{})}
		k.Publish(stock("stock", 1))
		ids := make([]string, 3)
		for i := range ids {
			ids[i] = k.Make(boss, "stock", `{"a":0}`)
		}
		k.router = k.Router.Router
		stop := make(chan struct{})
		var running sync.WaitGroup
		const clients = 4
		for c := range clients {
			running.Go(func() {
				r := rand.New(rand.NewPCG(seed, uint64(c)))
				for n := 0; ; n++ {
					select {
					case <-stop:
						return
					case <-time.After(time.Duration(r.IntN(10)) * time.Millisecond):
					}
					o := operation{instance: ids[r.IntN(len(ids))]}
					if r.IntN(3) > 0 {
						o.sets = fmt.Sprint(1000*n + c)
					}
					k.do(c, o, fmt.Sprintf("%d-%d", c, n), itself)
				}
			})
		}
		for range rounds {
			for _, fault := range []func(){
				k.kill,
				func() { k.SweepIdle() },
				func() { k.hang(time.Second) },
				func() { k.hang(20 * time.Second) },
			} {
				<-time.After(300 * time.Millisecond)
				fault()
			}
		}
		close(stop)
		running.Wait()
		for _, id := range ids {
			at := through(k.router)
			for n, sets := range []string{"", "-1", "-2", ""} {
				k.do(clients, operation{id, sets}, fmt.Sprint("last-", n), func(instances) instances { return at })
			}
		}
		result = porcupine.CheckOperationsTimeout(instanceModel, k.record, 0)
		require.Greater(t, len(k.record), 100*rounds)
		require.GreaterOrEqual(t, k.lost, k.life, "every cut of the power must come before answers")
		t.Logf("%d operations, %d lives, %d lost answers", len(k.record), k.life+1, k.lost)
	})
	return result
}
