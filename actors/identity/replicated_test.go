package identity

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/persistence"
	"troupe/persistence/key"
)

func missing(like string) string { return "tok_aaaaaaaaaaaaaaaa" + like[idChars:] }

// TestACredentialWorksOnEveryNode: at once when it was made, and no second longer when it was
// revoked.
func TestACredentialWorksOnEveryNode(t *testing.T) {
	onCluster(t, Options{}, func(c *cluster) {
		secret := c.token()
		c.everywhere("a token that was just made", Token, secret, nil)
		c.everywhere("a token as a session", Session, secret, failure.ErrUnauthorized)
		c.everywhere("a changed secret", Token, changeAt(secret, len(secret)-2), failure.ErrUnauthorized)
		c.everywhere("an unknown token", Token, missing(secret), failure.ErrUnauthorized)
		c.everywhere("an id of no kind", Token, "pwd_aaaaaaaaaaaaaaaa"+secret[idChars:], failure.ErrUnauthorized)
		c.everywhere("no credential", Token, "john.doe", failure.ErrUnauthorized)

		c.ask(func(n *clusterNode) error { return n.SetPassword(c.Context(), "john.doe", "pass the salt") })
		var session string
		c.ask(func(n *clusterNode) (err error) {
			session, _, err = n.SignIn(c.Context(), "john.doe", "pass the salt", netip.Addr{})
			return err
		})
		c.everywhere("a session that was just begun", Session, session, nil)
		for _, n := range c.nodes { // NB: an unknown role alone leaves the user's own rights
			n.SetDirectory(&Directory{})
			n.wants("a session of nobody", Session, session, failure.ErrUnauthorized)
			n.SetDirectory(parse(t, staff))
		}
		c.everywhere("a session of a user who came back at once", Session, session, nil)

		c.revoke(secret)
		c.ask(func(n *clusterNode) error { return n.SignOut(c.Context(), session) })
		pass(time.Second)
		c.everywhere("a revoked token", Token, secret, failure.ErrUnauthorized)
		c.everywhere("a session that was ended", Session, session, failure.ErrUnauthorized)
	})
}

// TestOnlyTheLeaderWrites: any other node does nothing, and says who has to.
func TestOnlyTheLeaderWrites(t *testing.T) {
	onCluster(t, Options{}, func(c *cluster) {
		n, ctx := c.follower(), c.Context()
		for what, do := range map[string]func(n *clusterNode) error{
			"Writable":        func(n *clusterNode) error { return n.Writable() },
			"CreateToken":     func(n *clusterNode) error { return second(n.Create(ctx, Token, CreateCredential{User: "john.doe"})) },
			"CreateSession":   func(n *clusterNode) error { return second(n.Create(ctx, Session, CreateCredential{User: "john.doe"})) },
			"Credentials":     func(n *clusterNode) error { _, err := n.Credentials(ctx, Token); return err },
			"Revoke":          func(n *clusterNode) error { return n.Revoke(ctx, Token, "tok_aaaaaaaaaaaaaaaa") },
			"SignIn":          func(n *clusterNode) error { return second(n.SignIn(ctx, "john.doe", "pass the salt", netip.Addr{})) },
			"SignInVouched":   func(n *clusterNode) error { return second(n.SignInVouched(ctx, Vouched{User: "john.doe"})) },
			"SignOut":         func(n *clusterNode) error { return n.SignOut(ctx, missing(strings.Repeat("x", idChars+1+secretChars))) },
			"SetPassword":     func(n *clusterNode) error { return n.SetPassword(ctx, "john.doe", "pass the salt") },
			"CreateForNobody": func(n *clusterNode) error { return second(n.Create(ctx, Token, CreateCredential{User: "nobody"})) },
		} {
			of := failure.Of(errors.Join(do(n), failure.ErrInternal))
			assert.True(t, of.Kind == failure.ErrNotLeader && of.Shard == uint16(key.Meta), "%v %v %v", what, of.Kind, of.Shard)
			assert.NotErrorIs(t, do(c.leader()), failure.ErrNotLeader, "%s on the leader", what)
		}
	})
}

func second[A, B any](_ A, _ B, err error) error { return err }

// TestANodeThatIsCutOffNeverSaysUnauthorized: it cannot know, whether it led or not.
func TestANodeThatIsCutOffNeverSaysUnauthorized(t *testing.T) {
	for _, leads := range []bool{false, true} {
		t.Run(fmt.Sprintf("leads=%v", leads), func(t *testing.T) {
			onCluster(t, Options{}, func(c *cluster) {
				known := c.token()
				c.everywhere("a token", Token, known, nil)
				n := c.follower()
				if leads {
					n = c.leader()
				}
				n.isolate(true)
				answers := make(chan error)
				for _, ask := range []func() error{ // NB: at the same moment; later it knows that it leads no more
					func() error { _, err := n.Credentials(c.Context(), Token); return err },
					func() error { return n.Revoke(c.Context(), Token, missing(known)) },
					func() error { return second(n.SignIn(c.Context(), "john.doe", "nobody has this", netip.Addr{})) },
					func() error { _, err := n.Authenticate(Token, missing(known)); return err },
				} {
					go func() { answers <- ask() }()
				}
				for range 4 {
					err := <-answers
					assert.True(t, err != nil && !errors.Is(err, failure.ErrUnauthorized) && !errors.Is(err, failure.ErrNotFound), err)
				}
				n.wants("a token, a moment later", Token, known, nil)
				n.wants("an unknown token, a moment later", Token, missing(known), failure.ErrUnavailable)
				late := c.token()
				n.wants("a token that was made elsewhere", Token, late, failure.ErrUnavailable)
				c.revoke(known)
				pass(freshMax)
				for _, secret := range []string{known, late, missing(known)} {
					n.wants("a token, much later", Token, secret, failure.ErrUnavailable)
				}
				assert.ErrorIs(t, n.SetPassword(c.Context(), "john.doe", "pass the salt"), failure.ErrNotLeader, "SetPassword")
				n.isolate(false)
				pass(freshMax)
				n.wants("a token that was revoked elsewhere", Token, known, failure.ErrUnauthorized)
				n.wants("a token that was made elsewhere", Token, late, nil)
			})
		})
	}
}

// TestCredentialsOutliveLeaders has the leadership wander and leaders cut off in the middle of
// writes: what was acknowledged holds on every node.
func TestCredentialsOutliveLeaders(t *testing.T) {
	onCluster(t, Options{}, func(c *cluster) {
		var live, revoked []string
		for round := range 6 {
			mine := []string{c.token(), c.token()}
			c.revoke(mine[0])
			live, revoked = append(live, mine[1]), append(revoked, mine[0])
			if round%2 == 0 {
				c.hand("")
			} else {
				old := c.leader()
				old.isolate(true)
				// NB: it believes that it leads still, so these go into its log alone.
				doomed := make(chan error, 2)
				go func() { doomed <- old.Revoke(c.Context(), Token, mine[0]) }()
				go func() { doomed <- second(old.Create(c.Context(), Token, CreateCredential{User: "john.doe"})) }()
				for range cap(doomed) {
					err := <-doomed
					assert.False(t, !errors.Is(err, failure.ErrOutcomeUnknown) && !errors.Is(err, failure.ErrNotLeader), err)
				}
				c.revoke(mine[1]) // by another leader, while the old one is away
				revoked, live = append(revoked, mine[1]), live[:len(live)-1]
				old.isolate(false)
			}
			pass(freshMax)
			for _, secret := range live {
				c.everywhere(fmt.Sprintf("round %d: a token", round), Token, secret, nil)
			}
			for _, secret := range revoked {
				c.everywhere(fmt.Sprintf("round %d: a revoked token", round), Token, secret, failure.ErrUnauthorized)
			}
		}
		var list []Credential
		c.ask(func(n *clusterNode) (err error) { list, err = n.Credentials(c.Context(), Token); return err })
		want := len(live) + len(revoked)
		assert.Len(t, list, want)
	})
}

// TestAnEndOutlivesItsLeader: what was ended with an outcome that nobody knew stays ended where that
// was said, and ends for good under the next leader, also when the node itself is that.
func TestAnEndOutlivesItsLeader(t *testing.T) {
	for _, again := range []bool{false, true} {
		t.Run(fmt.Sprintf("leads again=%v", again), func(t *testing.T) {
			const flush = 15 * time.Second
			onCluster(t, Options{FlushEvery: flush}, func(c *cluster) {
				secret, session, other := c.token(), c.session(), c.token()
				old := c.leader()
				old.isolate(true)
				outcomes := make(chan error)
				go func() { outcomes <- old.Revoke(c.Context(), Token, secret) }()
				go func() { outcomes <- old.SignOut(c.Context(), session) }()
				for range 2 {
					err := <-outcomes
					require.ErrorIs(t, err, failure.ErrOutcomeUnknown, "an end on a leader that was cut off")
				}
				synctest.Wait()
				old.wants("a token that was revoked here", Token, secret, failure.ErrUnauthorized)
				c.leader()
				old.isolate(false)
				if again {
					pass(2 * freshMax)
					c.hand(old.Name)
				}
				pass(2 * flush)
				c.everywhere("a token whose end was not durable", Token, secret, failure.ErrUnauthorized)
				c.everywhere("a session whose end was not durable", Session, session, failure.ErrUnauthorized)
				c.everywhere("another token", Token, other, nil)
				pass(flush)
				assert.Zero(t, old.ends.Size(), "%s remembers", old.Name)
				c.hand("")
				c.everywhere("the token, under another leader", Token, secret, failure.ErrUnauthorized)
			})
		})
	}
}

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

// TestASessionInUseDoesNotEnd: wherever it is used, and whoever leads afterwards.
func TestASessionInUseDoesNotEnd(t *testing.T) {
	const idle = 10 * time.Second
	for name, test := range map[string]struct {
		flush time.Duration
		use   func(c *cluster, use func(*clusterNode)) // for less than idle, from the start on
	}{
		"used on a follower": {4 * time.Second, func(c *cluster, use func(*clusterNode)) {
			use(c.follower())
			pass(5 * time.Second) // until it was told
		}},
		"used on a leader that leads no more": {4 * time.Second, func(c *cluster, use func(*clusterNode)) {
			use(c.leader())
			c.hand("")
			pass(5 * time.Second)
		}},
		"used on a follower that leads then": {30 * time.Second, func(c *cluster, use func(*clusterNode)) {
			n := c.follower()
			use(n)
			c.hand(n.Name)
		}},
		"used on a leader that is loading": {4 * time.Second, func(c *cluster, use func(*clusterNode)) {
			n := c.leader()
			service := n.present().service.Swap(nil)
			use(n)
			n.present().service.Store(service)
			pass(5 * time.Second)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			onCluster(t, Options{SessionIdle: idle, FlushEvery: test.flush}, func(c *cluster) {
				used, forgotten := c.session(), c.session()
				pass(7 * time.Second)
				test.use(c, func(n *clusterNode) { n.wants("a session in use", Session, used, nil) })
				pass(idle - c.since(used))
				c.leader().wants("a session in use", Session, used, nil)
				c.leader().wants("a session that nobody used", Session, forgotten, failure.ErrUnauthorized)
				pass(idle + 2*test.flush)
				c.everywhere("a session that is used no more", Session, used, failure.ErrUnauthorized)
				pass(2 * test.flush)
				for _, n := range c.nodes {
					assert.Zero(t, n.uses.Size(), "%s remembers", n.Name)
				}
			})
		})
	}
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

// TestANodeKnowsItsOwnUses: a session that is used on a node works there, though the leader has
// not heard of it.
func TestANodeKnowsItsOwnUses(t *testing.T) {
	onCluster(t, Options{SessionIdle: 12 * time.Second, FlushEvery: time.Hour}, func(c *cluster) {
		session := c.session()
		for range 4 {
			pass(10 * time.Second)
			c.everywhere("a session in use on every node", Session, session, nil)
		}
	})
}

// TestLeaversAreEndedByTheLeader: for good, on every node.
func TestLeaversAreEndedByTheLeader(t *testing.T) {
	onCluster(t, Options{}, func(c *cluster) {
		session := c.session()
		for _, n := range c.nodes {
			n.SetDirectory(parse(t, staffWithoutJohn))
		}
		pass(time.Second)
		for _, n := range c.nodes {
			n.SetDirectory(parse(t, staff))
		}
		c.everywhere("a session of a user who left", Session, session, failure.ErrUnauthorized)
	})
}

// TestANewLeaderReadsTheUsersFirst: sessions of users of whom it has not heard before go on.
func TestANewLeaderReadsTheUsersFirst(t *testing.T) {
	onCluster(t, Options{}, func(c *cluster) {
		session := c.session()
		late := c.follower()
		late.SetDirectory(parse(t, staffWithoutJohn))
		c.stored.Store(parse(t, staff))
		c.hand(late.Name)
		c.token() // it has begun
		pass(time.Second)
		c.everywhere("a session of a new user", Session, session, nil)
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
