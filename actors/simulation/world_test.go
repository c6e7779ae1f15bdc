package simulation_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/message"
	"troupe/actors/simulation"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

// definitions parses files and texts.
func definitions(t testing.TB, sources ...string) map[string]*statemachine.Definition {
	t.Helper()
	parser, err := statemachine.NewParser(statemachine.ParserOptions{})
	require.NoError(t, err)
	out := map[string]*statemachine.Definition{}
	for _, source := range sources {
		text, file := []byte(source), "inline.yaml"
		if strings.HasSuffix(source, ".yaml") {
			file = source
			text, err = os.ReadFile(source)
			require.NoError(t, err)
		}
		parsed, err := parser.Parse(statemachine.Source{File: file, Text: text})
		require.NoError(t, err)
		out[string(parsed.ID)] = parsed.Definition
	}
	return out
}

// begin is when worlds of these tests begin.
var begin = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

func newWorld(of map[string]*statemachine.Definition, users ...*identity.Principal) *simulation.World {
	return simulation.New(simulation.Options{
		Now: begin, Covers: true,
		Definitions: func(workflow string, version uint64) (*statemachine.Definition, error) {
			if d := of[workflow]; d != nil && (version == 0 || version == d.Version) {
				return d, nil
			}
			return nil, failure.ErrNotFound
		},
		User: func(name string) (*identity.Principal, error) {
			for _, u := range users {
				if string(u.ID) == name {
					return u, nil
				}
			}
			return nil, failure.ErrUnauthorized
		},
	})
}

var (
	john  = &identity.Principal{ID: "john.doe", Name: "John Doe", Roles: []string{"employee", "inspector"}}
	mary  = &identity.Principal{ID: "mary.major", Name: "Mary Major", Roles: []string{"employee", "manager"}}
	paulo = &identity.Principal{ID: "paulo.santos", Name: "Paulo Santos", Roles: []string{"employee", "purchasing"}, Privileges: []string{"mod-workflows"}}
)

const example = "../../cmd/troupe/example/workflows/"

func TestAnOrderOfTheExample(t *testing.T) {
	w := newWorld(definitions(t, example+"purchase-order.yaml"), john, mary, paulo)
	in, err := w.Create("john.doe", "purchase-order", nil, nil)
	require.NoError(t, err)
	require.ErrorIs(t, w.Send("john.doe", in, "submit", data.Value(`{"items":[]}`)), failure.ErrInvalid)
	require.ErrorIs(t, w.Send("mary.major", in, "submit", data.Value(`{"items":[{"name":"Desk","quantity":3,"price":499.9}]}`)), failure.ErrForbidden)
	require.NoError(t, w.Send("john.doe", in, "submit", data.Value(`{"items":[{"name":"Desk","quantity":3,"price":499.9}]}`)))
	tasks, err := in.TasksFor("mary.major")
	require.NoError(t, err)
	require.Len(t, tasks, 1)
	assert.Equal(t, "Approve the order by John Doe: €1499.70", tasks[0].Title.For("en"))
	assert.Equal(t, []string{"manager"}, tasks[0].Candidates.Roles)
	assert.Equal(t, begin.Add(72*time.Hour), tasks[0].Due)
	require.NoError(t, w.ChangeTask("mary.major", in, tasks[0].ID, message.Claim, ""))
	require.ErrorIs(t, w.Send("john.doe", in, "approve", nil), failure.ErrForbidden)
	require.NoError(t, w.Advance(time.Hour))
	require.NoError(t, w.Send("mary.major", in, "approve", nil))
	require.Len(t, w.Sent(), 1)
	require.ErrorIs(t, w.Answer(in, "nobody", 200, nil), failure.ErrNotFound)
	require.NoError(t, w.Answer(in, "supplier", 503, nil))
	require.ErrorIs(t, w.Answer(in, "supplier", 200, nil), failure.ErrNotAllowed, "its next attempt comes later")
	require.NoError(t, w.Advance(time.Minute))
	require.NoError(t, w.Answer(in, "supplier", 200, data.Value(`{"number":7}`)))
	require.NoError(t, w.Send("paulo.santos", in, "receive", nil))
	assert.False(t, in.IsDone())
	require.NoError(t, w.CompleteJob(in, "pay-supplier", data.Value(`{"receipt":"R-7"}`)))
	assert.True(t, in.IsDone())
	shown := string(in.AppendJSON(nil, 100))
	assert.Contains(t, shown, `"supplierAnswer":{"number":7}`)
	assert.Contains(t, shown, `"transitionEvent":"supplier.accepted"`)
	var missed []string
	for _, p := range w.Coverage()[0].Parts() {
		if !p.IsReached() {
			missed = append(missed, string(p.Kind)+" "+string(p.At.Node)+" "+p.Text)
		}
	}
	assert.Equal(t, []string{
		"transition checking always → approved", "guard checking svcPublic.total <= const.approvalLimit", "transition review reject → rejected",
		"transition paying error.invoke.paying → unpaid", "state unpaid ", "transition unpaid pay → closed", "action unpaid assign",
		"state rejected ", "action rejected assign", "transition waiting supplier.failed → byHand", "transition waiting always → cancelled",
		`guard waiting In("approval.rejected")`, "state byHand ", "transition byHand order → ordered", "state cancelled ",
	}, missed)
}

// TestAJobThatHasFailedForGoodIsKnown with how often and why, when the instance cannot take its end.
func TestAJobThatHasFailedForGoodIsKnown(t *testing.T) {
	w := newWorld(definitions(t, "id: print\nversion: 1\njobs: {label: {retry: {limit: 1, delay: PT1M}}}\n"+
		"stateMachines: {main: {initial: a, states: {a: {invoke: {job: label, onDone: b}}, b: {type: final}}}}"), john)
	in, err := w.Create("john.doe", "print", nil, nil)
	require.NoError(t, err)
	require.NoError(t, w.FailJob(in, "label", "no paper", false))
	require.NoError(t, w.Advance(time.Minute))
	require.NoError(t, w.FailJob(in, "label", "no ink", false))
	require.Len(t, in.Jobs(), 1)
	of := in.Jobs()[0]
	assert.True(t, of.Failed && of.Attempts == 2 && of.Message == "no ink", "%+v", of)
	assert.Len(t, in.Incidents(), 1)
}

// BenchmarkStep is an event of the example in a world that covers.
func BenchmarkStep(b *testing.B) {
	w := newWorld(definitions(b, example+"purchase-order.yaml"), john, mary, paulo)
	in, err := w.Create("john.doe", "purchase-order", nil, nil)
	require.NoError(b, err)
	for b.Loop() {
		require.ErrorIs(b, w.Send("john.doe", in, "nothing", nil), failure.ErrInvalid)
		in, err = w.Create("john.doe", "purchase-order", nil, nil)
		require.NoError(b, err)
		require.NoError(b, w.Send("john.doe", in, "submit", data.Value(`{"items":[{"name":"Desk","quantity":3,"price":499.9}]}`)))
	}
}
