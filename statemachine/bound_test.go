package statemachine

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/statemachine/data"
	"troupe/statemachine/internal/chart"
	"troupe/statemachine/internal/parse"
)

// greedy has an event for each way in which a step could grow with its data.
const greedy = `
id: greedy
context: {svcPublic: {kept: {}}}
events: {log: {apply: none}, object: {apply: none}, raise: {apply: none}, chain: {apply: none}, many: {apply: none}, grow: {apply: none}, build: {apply: none}, find: {apply: none}, empty: {apply: none}, look: {apply: none},
  search: {apply: none}, guarded: {apply: none}, rights: {apply: none}}
stateMachines:
  main:
    states:
      a:
        on:
          log: {actions: [{foreach: {array: event.data.list, item: it, do: [{log: '${event.data.note}'}]}}]}
          object: {actions: [{log: '${event.data}'}]}
          raise: {actions: [{foreach: {array: event.data.list, item: it, do: [{raise: {event: taken, data: {copy: '${event.data.note}'}}}]}}]}
          chain: {actions: [{raise: {event: link, data: {n: 0, note: '${event.data.note}'}}}, {raise: taken}]}
          link:
            - guard: event.data.n < 900
              actions: [{raise: {event: link, data: {n: '${event.data.n + 1}', note: '${event.data.note}'}}}]
          many: {actions: [{foreach: {array: event.data.list, item: it, do: [{raise: taken}]}}]}
          grow: {actions: [{foreach: {array: event.data.list, item: it, do: [{assign: {svcPublic.kept.text: '${svcPublic.kept.?text.orValue("x") + svcPublic.kept.?text.orValue("x")}'}}]}}]}
          build: {actions: [{assign: {svcPublic.kept: {all: [TEN]}}}]}
          find: {actions: [{foreach: {array: event.data.list, item: it, do: [{if: 'event.data.known.exists(k, k == it)', then: [{log: found}]}]}}]}
          empty: {actions: [{foreach: {array: event.data.list, item: i, do: [{foreach: {array: event.data.list, item: j, do: []}}]}}]}
          look: {actions: [{foreach: {array: event.data.list, item: it, do: [{if: 'has(event.data.other)', then: [{log: found}]}]}}]}
          search: {actions: [{foreach: {array: event.data.list, item: it, do: [{if: 'event.data.note.contains("ab")', then: [{log: found}]}]}}]}
          copy: {actions: [{foreach: {array: event.data.list, item: it, do: [{assign: {svcPublic.kept.n: '${it}'}}]}}]}
          guarded: [GUARDS]
          rights: [RIGHTS]
          taken: {}
`

func stepGreedily(t *testing.T, event EventName, given string) (Result, uint64, error) {
	t.Helper()
	text := strings.Replace(greedy, "TEN", strings.TrimSuffix(strings.Repeat(`'${event.data.note}',`, 100), ","), 1)
	text = strings.Replace(text, "GUARDS", strings.Repeat("{guard: 'event.data.known.exists(k, k == -1)'},", 30), 1)
	text = strings.Replace(text, "RIGHTS", strings.Repeat("{allow: {when: 'event.data.known.exists(k, k == -1)'}},", 30), 1)
	d := parseChart(t, text)
	r := started(t, d)
	v, err := data.Clean([]byte(given))
	require.NoError(t, err)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r, err = d.Step(&r.Instance, Event{Name: event, Data: v, Caller: &Caller{ID: "u"}, Now: time.Unix(1, 0)})
	runtime.ReadMemStats(&after)
	return r, after.TotalAlloc - before.TotalAlloc, err
}

func listOf(n int) string { return "[0" + strings.Repeat(",0", n-1) + "]" }

func TestAStepHasABoundOnMemory(t *testing.T) {
	note := strings.Repeat("n", 600_000)
	for _, c := range []struct {
		event EventName
		n     int
		note  string
		want  string
	}{
		{"log", 1000, note, ""},
		{"raise", 9000, note, "raised events with more than 4 MiB of data wait"},
		{"raise", 6, note, ""},
		{"raise", 1001, "", "more than 1000 raised events wait"},
		{"raise", 1000, "", "more than 1000 microsteps"},
		{"raise", 900, note[:1000], ""},
		{"many", 9000, "", "more than 1000 raised events wait"},
		{"grow", 9000, "", "too large"},
		{"build", 1, note, "a value would be larger than 4 MiB"},
	} {
		_, allocated, err := stepGreedily(t, c.event, fmt.Sprintf(`{"list":%s,"note":%q}`, listOf(c.n), c.note))
		got := fmt.Sprint(err)
		assert.True(t, (c.want != "" || err == nil) && strings.Contains(got, c.want), "%s of %d: got %s, want %q", c.event, c.n, got, c.want)
		assert.False(t, err != nil && !errors.Is(err, ErrExecution) && !errors.Is(err, ErrTooLarge), "%s: got %v, want ErrExecution or ErrTooLarge", c.event, err)
		assert.LessOrEqual(t, allocated, uint64(200<<20), "%s of %d: allocated %d MiB", c.event, c.n, allocated>>20)
	}
}

func TestAStepHasABoundOnTime(t *testing.T) {
	const costly = "the event costs more than 10000000 units"
	for _, c := range []struct {
		event EventName
		n     int
		known int
		note  string
		want  string
	}{
		{"find", 500, 40_000, "", costly},
		{"find", 5, 40_000, "", ""},
		{"find", 2000, 100, "", ""},
		{"empty", 4000, 1, "", costly},
		{"empty", 2000, 1, "", ""},
		{"look", 4000, 1, "", ""},
		{"search", 4000, 1, strings.Repeat("n", 1000), ""},
		{"copy", 9000, 1, "", ""},
		{"guarded", 1, 120_000, "", costly},
		{"guarded", 1, 1000, "", ""},
		{"rights", 1, 120_000, "", costly},
		{"rights", 1, 1000, "", ErrForbidden.Error()},
	} {
		given := fmt.Sprintf(`{"list":%s,"known":%s,"note":%q}`, listOf(c.n), strings.ReplaceAll(listOf(c.known), "0", "1"), c.note)
		_, _, err := stepGreedily(t, c.event, given)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s of %d: got %v", c.event, c.n, err)
		case c.want != "" && (errors.Is(err, ErrExecution) != (c.want == costly) || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s of %d: got %v, want %s", c.event, c.n, err, c.want)
		}
	}
}

func TestWhatWasRaisedAndTakenIsNotKept(t *testing.T) {
	d := &Definition{}
	m := &macrostep{d: d}
	half := make(data.Value, maxWaitingBytes/2)
	for i := range 3 * maxWaiting {
		m.enqueue(internalEvent{name: "x", data: half})
		if i == 0 {
			continue // one always waits
		}
		m.takeInternal()
		require.NoError(t, m.failure, "event %d", i)
		require.Nil(t, m.queue[0].data, "event %d: the data of what was taken is kept", i)
	}
	assert.Equal(t, maxWaitingBytes/2, m.waiting)
}

func TestALongLogLineIsCut(t *testing.T) {
	long := strings.Repeat(`ä\u00e4\n`, 500_000)
	for _, given := range []string{`{"list":[1],"note":"` + long + `"}`, `{"list":[1],"note":"a` + long + `"}`} {
		r, allocated, err := stepGreedily(t, "log", given)
		require.NoError(t, err)
		line := r.Logs[0]
		if len(line) > chart.MaxLogBytes+len("…") || len(line) < chart.MaxLogBytes || !utf8.ValidString(line) ||
			!strings.HasPrefix(line, "ää\n") && !strings.HasPrefix(line, "aää\n") || !strings.HasSuffix(line, "…") {
			t.Errorf("got %d bytes: %.20q", len(line), line)
		}
		assert.LessOrEqual(t, allocated, uint64(1<<20), "allocated")
	}
	r, _, err := stepGreedily(t, "object", `{"a":"`+strings.Repeat("ä", 2000)+`"}`)
	assert.True(t, err == nil && len(r.Logs[0]) <= chart.MaxLogBytes+len("…") && utf8.ValidString(r.Logs[0]), "an object: got %.20q, %v", r.Logs, err)
	short := strings.Repeat("x", chart.MaxLogBytes)
	r, _, err = stepGreedily(t, "log", `{"list":[1],"note":"`+short+`"}`)
	assert.True(t, err == nil && r.Logs[0] == short, "a line that fits: got %.20q, %v", r.Logs, err)
}

// TestTheLimitsCountAsTheDocumentSays: at each the file is taken, and one beyond it is refused.
func TestTheLimitsCountAsTheDocumentSays(t *testing.T) {
	p := newParser(t)
	states := func(n int) string { // with the machine and the whole they are two more
		var b strings.Builder
		b.WriteString("id: w\nstateMachines: {m: {initial: s0, states: {")
		for k := range n - 1 {
			fmt.Fprintf(&b, "s%d: {on: {go: s%d}}, ", k, k+1)
		}
		return fmt.Sprintf("%ss%d: {type: final}}}}\n", b.String(), n-1)
	}
	guard := func(text string) string {
		return "id: w\nstateMachines: {m: {initial: a, states: {a: {on: {go: {guard: '" + text + "', target: b}}}, b: {type: final}}}}\n"
	}
	nested := func(n int) string { return guard(strings.Repeat("(", n) + "true" + strings.Repeat(")", n)) }
	actions := "{log: hi}"
	for k := range 9 {
		actions = fmt.Sprintf("{foreach: {array: 'svcPublic.l', item: it%d, do: [%s]}}", k, actions)
	}
	loops := "id: w\nstateMachines: {m: {initial: a, states: {a: {type: final, entry: [" + actions + "]}}}}\n"
	for _, c := range []struct {
		name, text string
		fits       bool
	}{
		{"states", states(parse.MaxNodes - 2), true},
		{"one state more", states(parse.MaxNodes - 1), false},
		{"nesting of an expression", nested(99), true},
		{"one more", nested(100), false},
		{"loops of actions inside each other", loops, true},
	} {
		_, err := p.Parse(Source{File: "w.yaml", Text: []byte(c.text)})
		assert.Equal(t, c.fits, err == nil, "%s: got %.200v", c.name, err)
	}
}
