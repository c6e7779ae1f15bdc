package statemachine

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"troupe/statemachine/data"
)

// TestCallersReachPrivateDataOnlyWhereDeclared: whatever the event and its data, svcPrivate stays as it is unless the event's
// declaration says otherwise, and what names both documents in an unclear way changes nothing.
func TestCallersReachPrivateDataOnlyWhereDeclared(t *testing.T) {
	d := parseChart(t, `
id: w
context: {svcPublic: {a: 0}, svcPrivate: {limit: 1}}
events:
  both: {private: true}
  replaced: {private: true, apply: replace}
  hidden: {into: svcPrivate}
  shown: {into: svcPublic}
  quiet: {apply: none, private: true}
  loose: {unmatched: apply, allow: {users: [u]}}
stateMachines: {m: {initial: a, states: {a: {on: {plain: {}, both: {}, replaced: {}, hidden: {}, shown: {}, quiet: {}}}}}}
`)
	value := rapid.SampledFrom([]string{`1`, `null`, `[]`, `{}`, `{"limit":2}`, `{"svcPrivate":{"limit":3}}`, `{"a":1}`})
	reached, refused := 0, 0
	property := func(rt *rapid.T) {
		start := started(rt, d)
		name := rapid.SampledFrom([]string{"plain", "both", "replaced", "hidden", "shown", "quiet", "loose"}).Draw(rt, "event")
		roots, others, objects, private, members := 0, 0, true, false, []string{}
		for _, key := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"svcPublic", "svcPrivate", "a", "svcprivate"}), 0, 3, rapid.ID[string]).Draw(rt, "keys") {
			v := value.Draw(rt, key)
			if strings.HasPrefix(key, "svcP") {
				roots++
				objects = objects && strings.HasPrefix(v, "{")
				private = private || key == "svcPrivate"
			} else {
				others++
			}
			members = append(members, fmt.Sprintf("%q:%s", key, v))
		}
		given := data.Value("{" + strings.Join(members, ",") + "}")
		if rapid.Bool().Draw(rt, "escaped") {
			given = data.Value(strings.ReplaceAll(string(given), "svc", `\u0073vc`))
		}
		whole := name == "hidden" || name == "shown"
		mayNamePrivate := name == "both" || name == "replaced" || name == "quiet"
		wantRefusal := roots > 0 && (others > 0 || !objects || whole || private && !mayNamePrivate)

		r, err := d.Step(&start.Instance, Event{Name: EventName(name), Data: given, Caller: &Caller{ID: "u"}, Now: time.Unix(1, 0)})
		require.True(rt, errors.Is(err, ErrInvalidData) == wantRefusal && (wantRefusal || err == nil), "%v %v %v %v", name, given, err, wantRefusal)
		if err != nil {
			refused++
			return
		}
		if got := string(r.Instance.Private); got != `{"limit":1}` {
			reached++
			require.False(rt, name != "hidden" && !(private && (name == "both" || name == "replaced")), "%s with %s: svcPrivate is %s", name, given, got)
		}
		require.False(rt, name == "quiet" && string(r.Instance.Public) != `{"a":1}`, "%s with %s: svcPublic is %s", name, given, r.Instance.Public)
	}
	for tries := 0; reached == 0 || refused == 0; tries++ { // NB: a hundred draws can miss one of them
		if rapid.Check(t, property); tries == 100 {
			t.Fatalf("%d reached svcPrivate and %d were refused: the test tested nothing", reached, refused)
		}
	}
}
