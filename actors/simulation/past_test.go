package simulation_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/message"
	"troupe/actors/past"
	"troupe/persistence/clocktest"
)

var seer = &identity.Principal{ID: "seer", Privileges: []string{"mod-workflows"}}

// moment is what is known of an instance after an entry, as it was answered then.
type moment struct {
	workflow, id string
	sequence     uint64
}

// TestEveryMomentCanBeReadAgain plays random walks against a router, keeps what each instance was answered as after each step, and asks
// for all of that again at the end: before and behind a restart it is the same, byte for byte. The walks have timers, jobs, children,
// callbacks, claims, incidents and rights. In the end, behind a reload of the home, each instance goes back to one of its moments, ended or not, and on from there.
func TestEveryMomentCanBeReadAgain(t *testing.T) {
	const walks, steps = 14, 60
	texts := walkedTexts(t)
	of := definitions(t, texts...)
	count, resets := 0, 0
	for seed := range uint64(walks) {
		synctest.Test(t, func(t *testing.T) {
			w := newWalk(t, seed, of, texts)
			defer w.real.End()
			seen := map[moment]string{}
			see := func() {
				for id := range w.of {
					for _, s := range w.real.Instances(id) {
						reply, err := w.look(id, s.Name, 0)
						require.NoError(t, err)
						at := moment{id, s.Name, reply.Sequence}
						if before, ok := seen[at]; ok {
							require.Equal(t, before, string(reply.AppendRecord(nil)), "it changes without an entry")
						}
						seen[at] = string(reply.AppendRecord(nil))
					}
				}
			}
			for range steps {
				w.step()
				w.compare()
				see()
			}
			resets += w.resets(see)
			for range 2 {
				for at, want := range seen {
					reply, err := w.look(at.workflow, at.id, at.sequence)
					require.NoError(t, err, "%v: %s", at, w.story())
					require.Equal(t, want, string(reply.AppendRecord(nil)), "%v: %s", at, w.story())
				}
				w.real.Restart()
			}
			count += len(seen)
		})
	}
	assert.Greater(t, count, walks*steps/4)
	assert.Greater(t, resets, 4*walks)
}

// resets has each instance go back to two of its moments, the second perhaps a reset, and counts the resets. What each comes to is told
// to see, and is what the instance was then, but for its history.
func (w *walk) resets(see func()) (count int) {
	for range 2 {
		w.real.Publish(w.texts...) // NB: what is awake has the definitions of before
		for workflow := range w.of {
			for _, s := range w.real.Instances(workflow) {
				now, err := w.look(workflow, s.Name, 0)
				require.NoError(w.t, err)
				to := 1 + w.r.Uint64N(now.Sequence)
				then, err := w.look(workflow, s.Name, to)
				require.NoError(w.t, err)
				w.say("reset %s to %d of %d", s.Name, to, now.Sequence)
				reply, err := w.as(func(who *identity.Principal) (*message.Reply, error) {
					return w.real.Reset(w.t.Context(), &message.Reset{
						Load: message.Load{Caller: who, WorkflowID: workflow, InstanceID: s.Name}, To: to, Reason: "the walk turns back",
					})
				})
				if errors.Is(err, failure.ErrKeyTaken) {
					continue
				}
				require.NoError(w.t, err, w.story())
				count++
				assert.Equal(w.t, now.Sequence+1, reply.Sequence, w.story())
				assert.Equal(w.t, string(then.States)+string(then.Public)+string(then.Private), string(reply.States)+string(reply.Public)+string(reply.Private), w.story())
				see()
				synctest.Wait()
				see()
			}
		}
		clocktest.Advance(3 * time.Minute)
		synctest.Wait()
		see()
	}
	return count
}

// look asks for an instance as anyone who can read it.
func (w *walk) look(workflow, id string, at uint64) (*message.Reply, error) {
	return w.as(func(who *identity.Principal) (*message.Reply, error) {
		return w.real.Load(w.t.Context(), &message.Load{Caller: who, WorkflowID: workflow, InstanceID: id, WithHistory: true, At: at})
	})
}

// as asks as the first who may.
func (w *walk) as(ask func(who *identity.Principal) (*message.Reply, error)) (reply *message.Reply, err error) {
	for _, who := range append([]*identity.Principal{seer}, walkers...) {
		if reply, err = ask(who); !errors.Is(err, failure.ErrForbidden) && !errors.Is(err, failure.ErrNotFound) {
			break
		}
	}
	return reply, err
}

const remembering = `
id: remembering
allow: {read: {users: [john, seer]}}
context: {svcPublic: {by: [], n: 0}}
create: {svcPublic: {type: object}, svcPrivate: {type: object}}
events: {quiet: {history: false}}
stateMachines:
  m:
    initial: a
    states:
      a:
        on:
          add: {actions: [{assign: {svcPublic.by: '${svcPublic.by + [user.name]}', svcPublic.n: '${svcPublic.n + int(has(event.data.n) ? event.data.n : 1)}'}}]}
          both: [{allow: {roles: [boss]}, target: b, actions: [{assign: {svcPublic.n: 100}}]}, {target: b, actions: [{assign: {svcPublic.n: 7}}]}]
          quiet: {}
      b: {on: {back: a}}
`

// TestWhatAMomentNeeds: a caller's name, which way was shut, and the data of a creation; and what was not kept is said, and never guessed.
func TestWhatAMomentNeeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWalk(t, 1, definitions(t, walkedTexts(t)...), append(walkedTexts(t), remembering))
		defer w.real.End()
		boss, clerk := &identity.Principal{ID: "john", Name: "John Smith", Roles: []string{"boss"}}, &identity.Principal{ID: "john", Name: "J. Smith"}
		made, err := w.real.Create(t.Context(), &message.Create{
			Caller: boss, WorkflowID: "remembering", Public: []byte(`{"x":{"y":1}}`), Private: []byte(`{"z":2}`),
		})
		require.NoError(t, err)
		var want []string
		keep := func() {
			reply, err := w.look("remembering", made.InstanceID, 0)
			require.NoError(t, err)
			want = append(want, string(reply.AppendRecord(nil)))
			require.Len(t, want, int(reply.Sequence))
		}
		keep()
		for _, step := range []struct {
			who         *identity.Principal
			event, data string
		}{{boss, "add", `{"n":3}`}, {clerk, "add", ``}, {clerk, "both", ``}, {boss, "back", ``}, {boss, "both", ``}, {boss, "back", ``}, {boss, "quiet", `{"n":1}`}, {boss, "add", ``}} {
			w.real.MustSend(step.who, "remembering", made.InstanceID, step.event, step.data)
			keep()
		}
		for n := range want {
			reply, err := w.look("remembering", made.InstanceID, uint64(n+1))
			if n+1 >= 8 {
				assert.ErrorIs(t, err, failure.ErrNotKept)
				assert.ErrorIs(t, err, past.ErrNotKept)
				assert.ErrorContains(t, err, "entry 8")
				continue
			}
			require.NoError(t, err)
			assert.Equal(t, want[n], string(reply.AppendRecord(nil)), "after entry %d", n+1)
		}
		assert.Contains(t, want[3], `"n":7`)
		assert.Contains(t, want[5], `"n":100`)
		_, err = w.real.Load(t.Context(), &message.Load{Caller: seer, WorkflowID: "remembering", InstanceID: made.InstanceID, At: uint64(len(want) + 1)})
		assert.ErrorIs(t, err, failure.ErrNotFound)
		_, err = w.real.Load(t.Context(), &message.Load{Caller: mary, WorkflowID: "remembering", InstanceID: made.InstanceID, At: 1})
		assert.Error(t, err, "mary may not read it")
	})
}
