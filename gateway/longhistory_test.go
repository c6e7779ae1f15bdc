package gateway

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"troupe/actors/message"
)

// TestALongHistoryNamesItsPages holds gateway/INTERFACE.md, "The record".
func TestALongHistoryNamesItsPages(t *testing.T) {
	from := uint64(0)
	f := &fakeWorkflows{load: func(_ context.Context, r *message.Load) (*message.Reply, error) {
		reply := smallReply(r.WorkflowID, r.InstanceID, 9, true)
		reply.HistoryFrom = from
		return reply, nil
	}}
	s := startServer(t, Options{}, f)
	for k, want := range []string{"", "", `</workflow/api/v1/instance/order/` + instanceOne + `/history>; rel="prev"`} {
		from = uint64(k)
		a := s.do(t, request{Method: "GET", Path: operationPath + "/instance/order/" + instanceOne, Headers: []string{withToken}})
		got := a.Header.Get("Link")
		assert.True(t, got == want && strings.Contains(a.Body, `],"historyFrom":2,"states"`) == (want != ""), "from %d: got %q, %s", k, got, a.Body)
	}
}
