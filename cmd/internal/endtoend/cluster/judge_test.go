package cluster

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/gateway/client"
)

// TestJudge holds that what no single instance can have shown is found.
func TestJudge(t *testing.T) {
	type operation struct {
		event            bool
		seen             uint64
		called, returned time.Duration
	}
	for _, c := range []struct {
		name    string
		history []operation
		wrong   bool
	}{
		{"one after the other", []operation{{true, 2, 0, 1}, {false, 2, 2, 3}, {true, 3, 4, 5}}, false},
		{"a read beside an event sees either", []operation{{true, 2, 0, 9}, {false, 1, 1, 2}, {false, 2, 3, 4}}, false},
		{"a read shows less than was acknowledged", []operation{{true, 2, 0, 1}, {false, 1, 2, 3}}, true},
		{"what was seen is gone", []operation{{true, 2, 0, 9}, {false, 2, 1, 2}, {false, 1, 3, 4}}, true},
		{"an event is there twice", []operation{{true, 2, 0, 1}, {false, 3, 2, 3}}, true},
		{"two events have one number", []operation{{true, 2, 0, 1}, {true, 2, 0, 1}}, true},
		{"a later event came first", []operation{{true, 3, 0, 1}, {true, 2, 2, 3}}, true},
	} {
		in := shared{id: "x", entries: 1}
		for i, o := range c.history {
			in.saw(i, o.event, o.seen, o.called, o.returned)
		}
		err := in.judge()
		assert.Equal(t, c.wrong, errors.Is(err, errWrong), "%s: got %v", c.name, err)
	}
}

// TestAcknowledge holds which answers to the items of a batch are wrong, and which are to be
// asked for again.
func TestAcknowledge(t *testing.T) {
	done := func(id string, sequence uint64) client.BatchResult {
		return client.BatchResult{Status: 200, InstanceID: id, Sequence: sequence}
	}
	refused := func(status int) client.BatchResult { return client.BatchResult{Status: status} }
	for _, c := range []struct {
		name    string
		answers [][]client.BatchResult
		want    string
	}{
		{"done", [][]client.BatchResult{{done("x", 2), done("x", 3), done("y", 1)}}, "done"},
		{"done at last", [][]client.BatchResult{{done("x", 2), refused(504), refused(503)}, {refused(503), done("x", 3), done("y", 1)}}, "done"},
		{"not yet", [][]client.BatchResult{{done("x", 2), refused(503), done("y", 1)}}, "again"},
		{"the later one first", [][]client.BatchResult{{done("x", 3), done("x", 2), done("y", 1)}}, "wrong"},
		{"of another instance", [][]client.BatchResult{{done("z", 2), done("x", 3), done("y", 1)}}, "wrong"},
		{"made twice", [][]client.BatchResult{{done("x", 2), refused(503), done("y", 1)}, {done("x", 2), done("x", 3), done("z", 1)}}, "wrong"},
		{"done twice", [][]client.BatchResult{{done("x", 2), refused(503), done("y", 1)}, {done("x", 4), done("x", 3), done("y", 1)}}, "wrong"},
		{"not allowed", [][]client.BatchResult{{done("x", 2), refused(409), done("y", 1)}}, "wrong"},
	} {
		at := &instance{id: "x", acked: 1}
		items := []batched{{at: at, id: "x", sequence: 2}, {at: at, id: "x", sequence: 3}, {sequence: 1}}
		var err error
		for _, a := range c.answers {
			if err = acknowledge(items, a); err != nil && !passing(err) {
				break
			}
		}
		got := "done"
		if err != nil {
			got = "wrong"
			if passing(err) {
				got = "again"
			}
		}
		assert.Equal(t, c.want, got, "%v %v", c.name, err)
	}
}

// TestDraw holds that the items of a batch bring each instance on one by one, and that nothing is
// sent to one that the batch makes.
func TestDraw(t *testing.T) {
	w := &worker{instances: make([]*instance, held)}
	for i := range held / 2 {
		w.instances[i] = &instance{id: strings.Repeat("i", i+1), acked: uint64(i + 1)}
	}
	for range 100 {
		request, items := w.draw()
		require.True(t, len(items) != 0 && len(items) == len(request.Items), "%d items, %d of them known", len(request.Items), len(items))
		last := map[int]uint64{}
		for i, b := range items {
			before := last[b.place]
			if before == 0 && b.at != nil {
				before = b.at.acked
			}
			if b.sequence != before+1 || b.at == nil && strings.Contains(string(request.Items[i]), "instanceId") {
				t.Errorf("item %d is entry %d behind %d: %s", i, b.sequence, before, request.Items[i])
			}
			last[b.place] = b.sequence
		}
	}
}
