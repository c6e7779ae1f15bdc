package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"troupe/actors/failure"
	"troupe/persistence"
)

// TestFailures: the outermost failure decides, and foreign errors have a kind too.
func TestFailures(t *testing.T) {
	late := &failure.Error{Kind: failure.ErrQuota, Reason: "three a second", Wait: time.Second}
	for name, c := range map[string]struct {
		err          error
		kind         failure.Kind
		reason, text string
	}{
		"a kind alone":           {failure.ErrNotFound, failure.ErrNotFound, "", "not found"},
		"wrapped":                {fmt.Errorf("load: %w", failure.ErrNotFound), failure.ErrNotFound, "", "load: not found"},
		"a refusal":              {failure.Refuse(failure.ErrInvalid, "no %s", "field"), failure.ErrInvalid, "no field", "no field"},
		"for the log":            {failure.Errorf(failure.ErrBusy, "slot %d", 3), failure.ErrBusy, "", "slot 3"},
		"two kinds":              {failure.Errorf(failure.ErrUnavailable, "%w", failure.Refuse(failure.ErrBusy, "later")), failure.ErrUnavailable, "", "later"},
		"two kinds, the other":   {fmt.Errorf("%w: %w", failure.ErrBusy, failure.Refuse(failure.ErrInvalid, "x")), failure.ErrBusy, "", "busy: x"},
		"with its request":       {failure.In("send to", "leave", late), failure.ErrQuota, "three a second", "send to leave: three a second"},
		"with a request alone":   {failure.In("sign out", "", failure.ErrUnauthorized), failure.ErrUnauthorized, "", "sign out: unauthorized"},
		"the store is stalled":   {failure.OfStore(persistence.ErrStalled), failure.ErrUnavailable, "", "store is stalled"},
		"the store is corrupt":   {failure.OfStore(fmt.Errorf("key: %w", persistence.ErrCorrupt)), failure.ErrExecution, "", "key: " + persistence.ErrCorrupt.Error()},
		"the store is in doubt":  {persistence.ErrOutcomeUnknown, failure.ErrOutcomeUnknown, "", persistence.ErrOutcomeUnknown.Error()},
		"a request that ended":   {failure.In("load", "", context.Canceled), failure.ErrOutcomeUnknown, "", "load: context canceled"},
		"an error of nobody":     {errors.New("new"), failure.ErrInternal, "", "new"},
		"nothing of the store's": {failure.OfStore(errors.New("new")), failure.ErrInternal, "", "new"},
	} {
		of := failure.Of(c.err)
		assert.True(t, of.Kind == c.kind && of.Reason == c.reason && c.err.Error() == c.text,
			"%s: got %q, %q and %q, want %q, %q and %q", name, of.Kind, of.Reason, c.err, c.kind, c.reason, c.text)
	}
	err := failure.In("send to", "leave", late)
	if !errors.Is(err, failure.ErrQuota) || errors.Is(err, failure.ErrBusy) || failure.Of(err).Wait != time.Second {
		t.Errorf("got %v with the wait %v, want ErrQuota and a second", err, failure.Of(err).Wait)
	}
	of := failure.Of(failure.OfStore(persistence.NotLed(3)))
	assert.True(t, of.Kind == failure.ErrNotLeader && of.Shard == 3, "got %v of the shard %d, want ErrNotLeader of 3", of.Kind, of.Shard)
	assert.Equal(t, failure.ErrOutcomeUnknown, failure.Of(failure.OfStore(&persistence.ShardError{Shard: 3, Err: persistence.ErrLost})).Kind)
	of = failure.Of(failure.In("send to", "leave", failure.Elsewhere(7)))
	assert.True(t, of.Kind == failure.ErrNotLeader && of.Shard == 7, "got %v of the shard %d, want ErrNotLeader of 7", of.Kind, of.Shard)
	assert.True(t, failure.In("send to", "leave", nil) == nil && failure.OfStore(nil) == nil, "nil does not stay nil")
}
