package workflowtest

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"troupe/actors/identity"
	"troupe/actors/message"
	"troupe/statemachine/filter"
)

// Leave is read by its creator and by managers.
const Leave = `
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

// Order has two machines. Everybody may do everything.
const Order = `
id: order
stateMachines:
  approval: {initial: open, states: {open: {on: {approve: done}}, done: {type: final}}}
  payment: {initial: open, states: {open: {on: {pay: paid}}, paid: {type: final}}}
`

// Stock is a workflow with indexes: guests do not see what is secret, users who are not
// members see nothing.
func Stock(id string, version int, indexes ...string) string {
	return fmt.Sprintf(`
id: %s
version: %d
indexes: [%s]
allow:
  read: {roles: [member], deny: {roles: [guest], when: 'has(svcPublic.secret) && svcPublic.secret == true'}}
context: {svcPrivate: {p: 0}}
events:
  skip: {unmatched: ignore, private: true}
  set: {private: true}
  close: {private: true}
  open: {private: true}
  side: {private: true}
stateMachines:
  main: {initial: open, states: {open: {on: {set: {}, close: closed}}, closed: {on: {set: {}, open: open, skip: {guard: 'false'}}}}}
  side: {initial: open, states: {open: {on: {side: closed}}, closed: {on: {side: open}}}}
`, id, version, strings.Join(indexes, ", "))
}

// StockIndexes are the usual indexes of Stock.
var StockIndexes = []string{"svcPublic.a", "svcPublic.b.c", "svcPublic.t", "svcPublic.n", "svcPrivate.p"}

// John and Mary are for Leave, Eve has no role, and the others are for Stock. Boss
// manages workflows.
var (
	John = Principal("john", []string{"employee"})
	Mary = Principal("mary", []string{"employee", "manager"})
	Eve  = Principal("eve", nil)

	Member = Principal("mem", []string{"member"})
	Guest  = Principal("gus", []string{"member", "guest"})
	Boss   = Principal("boss", []string{"member"}, string(identity.Workflows))
)

// Fill makes instances of a workflow, many at a time, and returns their ids in
// the order of publics.
func (r *Router) Fill(workflowID string, publics []string) []string {
	r.t.Helper()
	ids := make([]string, len(publics))
	var wg sync.WaitGroup
	const writers = 64
	for first := range min(writers, len(publics)) {
		wg.Go(func() {
			for n := first; n < len(publics); n += writers {
				reply, err := r.Create(r.t.Context(), &message.Create{Caller: Boss, WorkflowID: workflowID, Public: Value(publics[n])})
				if err != nil {
					r.t.Error(err)
					return
				}
				ids[n] = reply.InstanceID
			}
		})
	}
	wg.Wait()
	return ids
}

// OneOf draws one of values.
func OneOf[T any](r *rand.Rand, values ...T) T { return values[r.IntN(len(values))] }

// RandomPublic draws data that has something at the paths that are asked about.
func RandomPublic(r *rand.Rand, n int) string {
	scalar := func() string {
		return OneOf(r, "null", "0", "1", "2", "3", "-1", "1.5", "1e2", `""`, `"a"`, `"ab"`, `"abc"`, `"b"`, `"\u0000"`, `"é"`, "true", "false")
	}
	array := func() string {
		var elements []string
		for range r.IntN(4) {
			elements = append(elements, OneOf(r, scalar(), scalar(), "[1,2]", `{"c":1}`, "[]"))
		}
		return "[" + strings.Join(elements, ",") + "]"
	}
	members := []string{fmt.Sprintf(`"n":%d`, n)}
	if r.IntN(5) > 0 {
		members = append(members, `"a":`+OneOf(r, scalar(), scalar(), scalar(), array(), array(), `{"x":1}`, fmt.Sprint(r.IntN(1000))))
	}
	if r.IntN(5) > 0 {
		members = append(members, `"b":`+OneOf(r, `{"c":`+scalar()+`}`, `{"c":`+array()+`}`, `[{"c":`+scalar()+`},{"c":`+scalar()+`}]`, scalar(), `[{"c":1},{}]`, `{}`))
	}
	if r.IntN(5) > 0 {
		long := `"` + strings.Repeat("x", 300) + fmt.Sprint(r.IntN(3)) + `"`
		members = append(members, `"t":`+OneOf(r, fmt.Sprintf(`"t%02d"`, r.IntN(60)), fmt.Sprintf(`["t%02d","t%02d"]`, r.IntN(60), r.IntN(60)), long))
	}
	if r.IntN(4) == 0 {
		members = append(members, `"secret":true`)
	}
	if r.IntN(2) == 0 {
		members = append(members, `"u":`+scalar())
	}
	return "{" + strings.Join(members, ",") + "}"
}

// RandomSet is the data of an event that changes one or two values.
func RandomSet(r *rand.Rand) string {
	return OneOf(r, `{"a":1}`, `{"a":[1,2,"x"]}`, `{"a":null}`, `{"a":"y","t":["t01","t02"]}`, `{"t":"t03"}`, `{"b":[{"c":1},{"c":[2,3]}]}`,
		`{"b":null}`, `{"svcPrivate":{"p":1}}`, `{"svcPrivate":{"p":null},"svcPublic":{"a":2}}`, `{}`, fmt.Sprintf(`{"a":%d}`, r.IntN(50)))
}

// Publics are the data of many instances.
func Publics(seed uint64, count int) []string {
	r := rand.New(rand.NewPCG(2, seed))
	all := make([]string, count)
	for n := range all {
		all[n] = RandomPublic(r, n)
	}
	return all
}

// Slow is a filter that takes seconds for a megabyte, and SlowNot one that is true of
// what Slow does not match.
const (
	Slow    = `{"svcPublic.t":{"$regex":"(x?){250}y"}}`
	SlowNot = `{"svcPublic.t":{"$not":{"$regex":"(x?){250}y"}}}`
)

// Large is data of n bytes that Slow does not match.
func Large(n int) string { return `{"t":"` + strings.Repeat("x", n) + `"}` }

// PartOfSlow begins half of what Slow takes for a large instance. What ends
// at once has ended before it, on however slow a machine: atOnce says so.
func PartOfSlow(t testing.TB) (atOnce func() bool) {
	t.Helper()
	f, err := filter.Parse([]byte(Slow), filter.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var ended atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.Match(filter.Document{Public: Value(Large(900_000 / 2)), Ended: ended.Load})
	}()
	return func() bool {
		select {
		case <-done:
			return false
		default:
			ended.Store(true)
			<-done
			return true
		}
	}
}
