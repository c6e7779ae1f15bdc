package statemachine

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"troupe/statemachine/expr"
)

// TestAFaultHasItsPlace: file, line, expression, and the values that the expression names, where a step fails.
func TestAFaultHasItsPlace(t *testing.T) {
	const chart = `id: w
context: {svcPublic: {item: chair, list: [{n: 7}, {n: x}]}, svcPrivate: {limit: 3}}
events: {go: {}}
guards:
  bad: 'svcPublic.itm > 1'
actions:
  named:
    - assign: {svcPublic.a: '${svcPrivate.limit + svcPublic.item}'}
webhooks: {to: {url: 'https://example.org'}}
stateMachines:
  m:
    states:
      a:
        on:
          go:
            - ACTION
          end: b
      b: {type: final}
`
	for what, c := range map[string]struct {
		action string
		line   int
		source string
		read   []expr.Read
	}{
		"a webhook's body, lines below": {
			"actions:\n                - webhook:\n                    to: to\n                    body:\n                      item: '${svcPublic.itm}'\n", 20,
			"svcPublic.itm",
			[]expr.Read{{Path: "svcPublic.itm"}},
		},
		"a named action": {
			"actions: [named]", 8, "svcPrivate.limit + svcPublic.item",
			[]expr.Read{{Path: "svcPrivate.limit", Value: "3"}, {Path: "svcPublic.item", Value: `"chair"`}},
		},
		"a named guard": {"guard: bad", 5, "svcPublic.itm > 1", []expr.Read{{Path: "svcPublic.itm"}}},
		"a loop": {
			"actions:\n                - foreach: {array: 'svcPublic.list', item: it, do: [{assign: {svcPublic.b: '${it.n + 1}'}}]}", 17,
			"it.n + 1",
			[]expr.Read{{Path: "it.n", Value: `"x"`}},
		},
		"no expression":                    {"actions:\n                - log: hi\n                - redirect: 'javascript:alert(1)'", 18, "", nil},
		"what an event brings, and a user": {"actions: [{log: '${user.id + event.data.text + event.name + string(svcPublic.none)}'}]", 16, "user.id + event.data.text + event.name + string(svcPublic.none)", []expr.Read{{Path: "user.id", Value: `"john"`}, {Path: "event.data.text"}, {Path: "event.name", Value: `"go"`}, {Path: "svcPublic.none"}}},
	} {
		d := parseChart(t, strings.Replace(chart, "ACTION", c.action, 1))
		in := begin(t, d, nil)
		_, err := d.Step(in, Event{Name: "go", Caller: &Caller{ID: "john"}, Now: testTime})
		f := d.FaultOf(err)
		if !assert.True(t, f != nil && f.Line == c.line && f.Expression == c.source && len(f.Read) == len(c.read), "%s: got %+v, %v", what, f, err) {
			continue
		}
		for k := range c.read {
			assert.Equal(t, c.read[k], f.Read[k], what)
		}
	}
	for what, c := range map[string]struct {
		action string
		line   int
	}{
		"more than 1000 microsteps": {"actions: [{raise: again}]\n          again: {actions: [{raise: again}]}", 17},
		"more than 100 deliveries":  {"actions:\n                - log: hi\n                - foreach:\n                    array: 'svcPublic.many'\n                    item: it\n                    do:\n                      - webhook: {to: to}\n", 22},
		"more than 1000 timers":     {"actions:\n                - foreach:\n                    array: 'svcPublic.many'\n                    item: it\n                    do: [{send: {event: go, delay: PT1S}}]\n", 20},
		"more than 10000 actions":   {"actions:\n                - foreach:\n                    array: 'svcPublic.many'\n                    item: it\n                    do:\n                      - foreach:\n                          array: 'svcPublic.many'\n                          item: other\n                          do: [{log: hi}]\n", 24},
	} {
		d := parseChart(t, strings.NewReplacer("ACTION", c.action, "{item: chair,", "{many: ["+strings.Repeat("1,", 1100)+"1], item: chair,").Replace(chart))
		_, err := d.Step(begin(t, d, nil), Event{Name: "go", Caller: &Caller{ID: "john"}, Now: testTime})
		f := d.FaultOf(err)
		assert.True(t, f != nil && f.Line == c.line && f.File != "" && f.Message == what, "%s: got %+v, %v", what, f, err)
	}
	d := parseChart(t, strings.Replace(chart, "ACTION", "target: b", 1))
	assert.True(t, d.FaultOf(errors.New("another")) == nil && d.FaultOf(errTooManyActions).Line == 0, "an error without a place")
}
