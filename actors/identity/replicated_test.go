package identity

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"troupe/actors/failure"
	"troupe/persistence"
	"troupe/persistence/key"
)

func missing(like string) string { return "tok_aaaaaaaaaaaaaaaa" + like[idChars:] }

// TestADeposedLeaderWritesNothing: neither a last use, nor an end, nor at Stop, nor when it leads
// again.
func TestADeposedLeaderWritesNothing(t *testing.T) {
	onCluster(t, Options{FlushEvery: 10 * time.Second}, func(c *cluster) {
		secret := c.token()
		old := c.leader()
		service := old.service()
		pass(5 * time.Second)
		old.wants("a token", Token, secret, nil) // a last use that is not stored
		before := old.Store.Metrics().Refused
		c.hand("")
		synctest.Wait()
		assert.ErrorIs(t, service.Revoke(c.Context(), Token, secret), failure.ErrUnavailable)
		pass(30 * time.Second)
		c.must(service.Stop(c.Context()))
		assert.Equal(t, before, old.Store.Metrics().Refused, "it tried to write")
		c.hand(old.Name)
		outcome := make(chan error, 1)
		service.ledger.append([]row{{kind: Token, id: secret[:idChars]}}, func(err error) { outcome <- err })
		err := <-outcome
		assert.ErrorIs(t, err, persistence.ErrNotLed, "a write of an epoch that is over")
		c.everywhere("the token", Token, secret, nil)
	})
}

// TestALeaderThatMayNotWrite: for a moment no writes are taken, as before the leadership is handed
// over. Nothing is done then, and nothing is left half done.
func TestALeaderThatMayNotWrite(t *testing.T) {
	onCluster(t, Options{}, func(c *cluster) {
		secret, n := c.token(), c.leader()
		service := n.service()
		resume, err := n.Store.Replica(key.Meta).Drain(c.Context())
		c.must(err)
		for what, err := range map[string]error{
			"Writable":              n.Writable(),
			"Revoke":                n.Revoke(c.Context(), Token, secret),
			"Revoke that had begun": service.Revoke(c.Context(), Token, secret),
		} {
			assert.ErrorIs(t, err, failure.ErrNotLeader, what)
		}
		resume()
		c.revoke(secret)
		pass(time.Second)
		c.everywhere("a revoked token", Token, secret, failure.ErrUnauthorized)
		for over, want := range map[bool]error{true: failure.ErrNotLeader, false: failure.ErrUnavailable} {
			whole := n.present()
			err := n.lead(c.Context(), func(*Service) error {
				if over {
					n.term.Store(nil)
				}
				return errStopped
			})
			assert.ErrorIs(t, err, want, "a service that stopped, with its epoch over %v", over)
			n.term.Store(whole)
		}
	})
}

// TestWritesWaitForTheTable: a leader whose credentials are not loaded yet does not guess.
func TestWritesWaitForTheTable(t *testing.T) {
	onCluster(t, Options{}, func(c *cluster) {
		n := c.leader()
		whole := n.present()
		loading := &term{epoch: whole.epoch, loaded: make(chan struct{}), ended: make(chan struct{})}
		n.term.Store(loading)
		ctx, cancel := context.WithTimeout(c.Context(), time.Second)
		defer cancel()
		assert.ErrorIs(t, n.Revoke(ctx, Token, "tok_aaaaaaaaaaaaaaaa"), failure.ErrUnavailable, "Revoke until the context ends")
		outcome := make(chan error)
		go func() { outcome <- n.Revoke(c.Context(), Token, "tok_aaaaaaaaaaaaaaaa") }()
		synctest.Wait()
		close(loading.ended)
		err := <-outcome
		assert.ErrorIs(t, err, failure.ErrNotLeader, "Revoke until the epoch ends")
		n.term.Store(whole)
	})
}

// TestUses: what is told is what the store does not have, and no clock that is ahead counts.
func TestUses(t *testing.T) {
	onCluster(t, Options{FlushEvery: 10 * time.Second}, func(c *cluster) {
		id := c.session()[:idChars]
		leader, follower := c.leader(), c.follower()
		used := time.Now().UnixMilli()
		leader.Used([]Use{{ID: id, At: used + time.Hour.Milliseconds()}, {ID: "ses_of_nobody", At: used}})
		pass(20 * time.Second)
		list, err := leader.Credentials(c.Context(), Session)
		if c.must(err); list[0].LastUsed.UnixMilli() != used {
			t.Errorf("a use in the future counts as of %v, want %v", list[0].LastUsed, time.UnixMilli(used))
		}
		follower.noteUse("ses_aaaaaaaaaaaaaaaa", used)
		follower.noteUse(id, used+touchMilliseconds-1)
		uses := follower.unstored()
		assert.True(t, len(uses) == 0 && follower.uses.Size() == 0, "got %v, which the store has", uses)
		follower.noteUse(id, used+touchMilliseconds)
		follower.noteUse(id, used)
		uses = follower.unstored()
		assert.True(t, len(uses) == 1 && uses[0] == (Use{ID: id, At: used + touchMilliseconds}), "got %v, want one use that the store does not have", uses)
	})
}

// TestAllNodesShareTheKeyOfSignIns: it is made once, and stays.
func TestAllNodesShareTheKeyOfSignIns(t *testing.T) {
	onCluster(t, Options{}, func(c *cluster) {
		if _, err := c.follower().FlowKey(); err != nil && !errors.Is(err, failure.ErrUnavailable) {
			t.Errorf("before it is made: got %v, want ErrUnavailable", err)
		}
		c.token() // NB: it is made before anything else
		want, err := c.leader().FlowKey()
		if c.must(err); len(want) != 32 || bytes.Equal(want, make([]byte, 32)) {
			t.Fatalf("got the key %x", want)
		}
		for range 2 {
			c.hand("")
			c.token()
			pass(time.Second)
			for _, n := range c.nodes {
				got, err := n.FlowKey()
				assert.True(t, err == nil && bytes.Equal(got, want), "%s: got %x, %v, want the same key on every node", n.Name, got, err)
			}
		}
	})
}

// TestGuessingCostsTheLeaderLittle: those who wait share the calls.
func TestGuessingCostsTheLeaderLittle(t *testing.T) {
	onCluster(t, Options{}, func(c *cluster) {
		guess := missing(c.token())
		n := c.follower()
		c.nodes[0].Isolate(true) // nobody can answer; it is not told that it is cut off
		c.nodes[1].Isolate(true)
		c.nodes[2].Isolate(true)
		pass(2 * time.Second)
		c.asked.Store(0)
		outcomes := make(chan error)
		for range currentWaitersMax + 10 {
			go func() { _, err := n.Authenticate(Token, guess); outcomes <- err }()
		}
		begun := time.Now()
		kinds := map[failure.Kind]int{}
		for range currentWaitersMax + 10 {
			kinds[failure.Of(<-outcomes).Kind]++
		}
		assert.True(t, kinds[failure.ErrBusy] == 10 && kinds[failure.ErrUnavailable] == currentWaitersMax, "%v %v", kinds, currentWaitersMax)
		assert.LessOrEqual(t, time.Since(begun), currentWaitMax, "they waited")
		pass(currentWaitMax)
		assert.LessOrEqual(t, c.asked.Load(), int64(2), "the leader was asked")
		for _, n := range c.nodes {
			n.Isolate(false)
		}
	})
}
