package load

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/identity"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

func TestTheDirectoryHasTheUser(t *testing.T) {
	text, err := BuiltIn().IdentityText()
	require.NoError(t, err)
	directory, err := identity.ParseDirectory("identity.yaml", []byte(text))
	require.NoError(t, err)
	p := directory.Principal(UserID)
	assert.True(t, p != nil && p.Roles[0] == "employee", "got %+v", p)
}

// TestTheEventsGoRound steps the definition through two rounds: each event must
// lead where the checks of the answers expect it, and the data must not grow.
func TestTheEventsGoRound(t *testing.T) {
	parser, err := statemachine.NewParser(statemachine.ParserOptions{})
	require.NoError(t, err)
	parsed, err := parser.Parse(statemachine.Source{File: "leave-request.yaml", Text: []byte(Definition)})
	require.NoError(t, err)
	d := parsed.Definition
	caller := &statemachine.Caller{ID: UserID, Roles: []string{"employee"}}
	at := BuiltIn().places["draft"]
	created, err := d.Create(statemachine.Creation{ID: "x", Caller: caller, Public: data.Value(createPublic), Now: time.Unix(0, 0)})
	require.NoError(t, err)
	instance, sizes := created.Instance, map[int]int{}
	for n := range 6 {
		step := &at.steps[0]
		result, err := d.Step(&instance, statemachine.Event{
			Name: statemachine.EventName(step.event), Data: data.Value(step.data.append(nil, nil)), Caller: caller, Now: time.Unix(0, 0),
		})
		require.NoError(t, err)
		got := d.Positions(&result.Instance)[0].Node
		assert.True(t, string(got) == step.to.node && result.Outcome == statemachine.Moved, "%v %v %v %v", n, step.event, got, result.Outcome)
		instance, at = result.Instance, step.to
		if size := len(instance.Public); n >= 4 {
			assert.Equal(t, sizes[n%2], size, "event %d: svcPublic has not the size of a round before", n)
		} else {
			sizes[n%2] = size
		}
	}
}

// What requests of the built-in scenario have.
const (
	createPublic = `{"requester":"bench","days":3,"from":"2026-12-01","reason":"a few days in the mountains"}`
	submitData   = `{"days":3,"status":"waiting","comment":"my calendar is free, and so is the hut"}`
)

func TestRequestsAreWhatTheInterfaceAsksFor(t *testing.T) {
	o := &Options{Addr: "host:1", Token: "T", Minimal: true, BasePath: "/base"}
	o.EnsureDefaults()
	s := newScript(o, content{})
	at := o.Scenario.places["draft"]
	s.beginBatch()
	s.addToBatch("I", &at.steps[0])
	s.addToBatch("J", &at.steps[0])
	batch := bytes.Clone(s.endBatch(0))
	for _, c := range []struct {
		name, path string
		text       []byte
		body       string
	}{
		{"create", "/base/workflow/api/v1/create", bytes.Clone(s.create()), `{"workflowId":"leave-request","data":{"svcPublic":` + createPublic + `}}`},
		{
			"event", "/base/workflow/api/v1/event", bytes.Clone(s.event("I", &at.steps[0])),
			`{"workflowId":"leave-request","instanceId":"I","event":{"name":"submit","data":` + submitData + `}}`,
		},
		{
			"batch", "/base/workflow/api/v1/events", batch,
			`[{"workflowId":"leave-request","instanceId":"I","event":{"name":"submit","data":` + submitData + `}},` +
				`{"workflowId":"leave-request","instanceId":"J","event":{"name":"submit","data":` + submitData + `}}]`,
		},
		{"read", "/base/workflow/api/v1/instance/leave-request/I", bytes.Clone(s.read("I")), ""},
		{"query", "/base/workflow/api/v1/instances/leave-request", bytes.Clone(s.query()), ""},
	} {
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(c.text)))
		require.NoError(t, err, "%v %v", c.name, c.text)
		body, err := io.ReadAll(r.Body)
		assert.True(t, err == nil && string(body) == c.body, "%s: got body %q, %v", c.name, body, err)
		assert.False(t, len(body) > 0 && !json.Valid(body), "%s: the body is no JSON: %s", c.name, body)
		assert.True(t, r.URL.Path == c.path && r.Host == "host:1" && r.Header.Get("Authorization") == "svc.token T" && r.Header.Get("Prefer") == "return=minimal",
			"%s: got %s to %s with %v", c.name, r.URL.Path, r.Host, r.Header)
	}
}

func TestMixes(t *testing.T) {
	for _, c := range []struct {
		text string
		want Mix
		ok   bool
	}{
		{"event=1", Mix{Event: 1}, true},
		{"create=1,event=8,read=1,query=0.1", Mix{1, 8, 1, 0.1}, true},
		{"read=3", Mix{Read: 3}, true},
		{"event=0", Mix{}, false},
		{"event", Mix{}, false},
		{"event=-1", Mix{}, false},
		{"event=NaN", Mix{}, false},
		{"event=Inf", Mix{}, false},
		{"delete=1", Mix{}, false},
		{"event=1,event=0", Mix{}, false},
		{"", Mix{}, false},
	} {
		got, err := ParseMix(c.text)
		assert.True(t, got == c.want && (err == nil) == c.ok, "%q: got %v, %v; want %v", c.text, got, err, c.want)
		assert.False(t, c.ok && got.String() != c.text, "%q: written as %q", c.text, got)
	}
}

func TestAMixIsPickedByItsParts(t *testing.T) {
	mix := Mix{1, 8, 0.5, 0.5}
	var got Mix
	for n := range 1000 {
		got[mix.pick(float64(n)/1000)]++
	}
	want := (Mix{100, 800, 50, 50})
	assert.Equal(t, want, got)
}

func TestFaultsOfOptionsAreNamedTogether(t *testing.T) {
	o := Options{Connections: -1, Rate: -1, Token: "a\r\nb", Batch: -1}
	o.EnsureDefaults()
	err := o.Validate()
	for _, part := range []string{"Addr is missing", "Connections", "Rate", "Token", "Batch"} {
		assert.True(t, err != nil && strings.Contains(err.Error(), part), "got %v, want it to name %s", err, part)
	}
}
