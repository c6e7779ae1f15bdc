package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/incident"
	"troupe/actors/message"
	"troupe/actors/outbox"
	"troupe/actors/pending"
	"troupe/actors/workflow/workflowtest"
	"troupe/persistence/clocktest"
)

// secretive fails on what an instance holds, for its caller and by itself, so that the error itself quotes it.
const secretive = `id: secretive
allow: {read: {when: 'user.id == svcPublic.owner'}}
stateMachines:
  main:
    states:
      a:
        after: {PT1S: {actions: [{mail: {to: '${svcPublic.salary}', subject: s, body: t}}]}}
        on:
          go: {actions: [{log: '${svcPublic[svcPublic.salary]}'}]}
          tell: {actions: [{mail: {to: '${svcPublic.salary}', subject: s, body: t}}]}
          end: b
      b: {type: final}
`

// secret is what nobody may see who may not read the instance.
const secret = "4711 a month"

// TestIncidentsTellDataToReadersOnly: an operator who may not read the instance learns that something failed, where, for whom and how
// often; and nobody learns from the log what it holds.
func TestIncidentsTellDataToReadersOnly(t *testing.T) {
	timed(t, func(h *harness, _ *atomic.Int64) {
		h.Publish(remind, secretive)
		operator := workflowtest.Principal("olga", nil, string(identity.Workflows))
		id := h.Make(john, "secretive", `{"owner":"john","salary":"`+secret+`"}`)
		for _, event := range []string{"go", "tell"} {
			_, err := h.Try(john, "secretive", id, event, "", "")
			require.True(t, failure.Of(err).Kind == failure.ErrExecution && !strings.Contains(err.Error(), secret), "the error of %s for the log: %v", event, err)
		}
		clocktest.Advance(2 * time.Second)
		for _, c := range []struct {
			caller *identity.Principal
			sees   bool
		}{{john, true}, {operator, false}, {nil, false}} {
			page, err := h.Waiting.Incidents(context.Background(), &pending.IncidentList{Caller: c.caller, Limit: 10})
			if h.Must(err); len(page.Incidents) != 3 {
				t.Fatalf("got %+v", page.Incidents)
			}
			var timer string
			for _, in := range page.Incidents {
				text := fmt.Sprintf("%q %+v", in.Error, in.Row)
				assert.True(t, strings.Contains(text, secret) == c.sees && (in.Error == pending.HiddenReason) != c.sees, "%v sees %s", c.caller, text)
				if r := in.Row; r.Kind == incident.Event {
					timer = in.ID
					assert.True(t, in.Version == 1 && in.File == "workflows/1.yaml" && in.Line == 7 && in.Expression == "", "%v %v", c.caller, r)
				} else if r.File == "" || r.Line < 9 || (r.Expression == "") != (r.Event == "tell") || r.User != "john" || r.Count != 1 || r.Instance != id {
					t.Errorf("%v: got %s", c.caller, text)
				}
			}
			if c.caller == nil {
				continue
			}
			err = h.ChangeIncident(context.Background(), c.caller, timer, false)
			reason := failure.Of(err).Reason
			assert.True(t, errors.Is(err, failure.ErrExecution) && strings.Contains(reason, secret) == c.sees, "%v retries: got %q", c.caller, reason)
			assert.NotContains(t, err.Error(), secret, "%v retries: the log", c.caller)
			assert.Contains(t, h.Log.String(), `"incident":"`+timer+`"`, "the log does not name the incident %s", timer)
		}
		switch log := h.Log.String(); {
		case strings.Contains(log, secret):
			t.Errorf("the log has data: %s", log)
		case !strings.Contains(log, `"line":9,"expression":"svcPublic[svcPublic.salary]"`), !strings.Contains(log, `"line":7,"expression":""`), !strings.Contains(log, `"line":10`):
			t.Errorf("the log does not say where: %s", log)
		}
	})
}

// TestIncidentsWithoutAnInstance: what was never created is for those who may read all of its workflow.
func TestIncidentsWithoutAnInstance(t *testing.T) {
	timed(t, func(h *harness, _ *atomic.Int64) {
		const never = "id: ID\nallow: {create: {users: [boss]}, read: READ}\nstateMachines: {m: {states: {a: {entry: [{log: '${svcPublic[\"" + secret + "\" + svcPublic.?x.orValue(\"\")]}'}], on: {go: b}}, b: {type: final}}}}\n"
		h.Publish(remind, strings.NewReplacer("ID", "all", "READ", "{users: [boss]}").Replace(never), strings.NewReplacer("ID", "some", "READ", "{when: 'svcPublic.x == 1'}").Replace(never))
		for _, of := range []string{"all", "some"} {
			_, err := h.Create(context.Background(), &message.Create{Caller: boss, WorkflowID: of})
			require.ErrorIs(t, err, failure.ErrExecution, of)
		}
		clocktest.Advance(time.Second)
		for caller, want := range map[*identity.Principal]bool{boss: true, john: false} {
			page, err := h.Waiting.Incidents(context.Background(), &pending.IncidentList{Caller: caller, Limit: 10})
			if h.Must(err); len(page.Incidents) != 2 {
				t.Fatalf("got %+v", page.Incidents)
			}
			for _, in := range page.Incidents {
				assert.True(t, strings.Contains(in.Error, secret) == (want && in.Workflow == "all") && in.Row.Kind == incident.Expression,
					"%s sees of %s %q", caller.ID, in.Workflow, in.Error)
			}
		}
	})
}

// TestDeliveriesTellDataToReadersOnly: what was wrong with a delivery may quote what it carried.
func TestDeliveriesTellDataToReadersOnly(t *testing.T) {
	delivering(t, func(h *harness, to *receiver) {
		to.answer = func(a outbox.Attempt) outbox.Answer {
			return outbox.Answer{Status: 550, Err: fmt.Errorf("550 nobody is %s", a.To), Final: true}
		}
		h.Publish(secretive)
		h.MustSend(john, "secretive", h.Make(john, "secretive", `{"owner":"john","salary":["x@example.org"]}`), "tell", "")
		clocktest.Advance(time.Second)
		for _, c := range []struct {
			caller *identity.Principal
			sees   bool
		}{{john, true}, {workflowtest.Principal("olga", nil, string(identity.Workflows)), false}, {nil, false}} {
			page, err := h.Waiting.Deliveries(context.Background(), &pending.DeliveryList{Caller: c.caller, State: outbox.Dead, Limit: 10})
			if h.Must(err); len(page.Deliveries) == 0 {
				t.Fatal("nothing is dead")
			}
			for _, d := range page.Deliveries {
				assert.True(t, strings.Contains(d.LastError, "x@example.org") == c.sees && (d.LastError == pending.HiddenReason) != c.sees && d.LastStatus == 550,
					"%v sees %d %q", c.caller, d.LastStatus, d.LastError)
			}
		}
	})
}
