package failure

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"troupe/persistence"
)

// TestOf: the outermost failure decides, and foreign errors have a kind too.
func TestOf(t *testing.T) {
	late := &Error{Kind: ErrQuota, Reason: "three a second", Wait: time.Second}
	for name, c := range map[string]struct {
		err          error
		kind         Kind
		reason, text string
	}{
		"a kind alone":           {ErrNotFound, ErrNotFound, "", "not found"},
		"wrapped":                {fmt.Errorf("load: %w", ErrNotFound), ErrNotFound, "", "load: not found"},
		"a refusal":              {Refuse(ErrInvalid, "no %s", "field"), ErrInvalid, "no field", "no field"},
		"for the log":            {Errorf(ErrBusy, "slot %d", 3), ErrBusy, "", "slot 3"},
		"two kinds":              {Errorf(ErrUnavailable, "%w", Refuse(ErrBusy, "later")), ErrUnavailable, "", "later"},
		"two kinds, the other":   {fmt.Errorf("%w: %w", ErrBusy, Refuse(ErrInvalid, "x")), ErrBusy, "", "busy: x"},
		"with its request":       {In("send to", "leave", late), ErrQuota, "three a second", "send to leave: three a second"},
		"with a request alone":   {In("sign out", "", ErrUnauthorized), ErrUnauthorized, "", "sign out: unauthorized"},
		"the store is stalled":   {OfStore(persistence.ErrStalled), ErrUnavailable, "", "store is stalled"},
		"the store is corrupt":   {OfStore(fmt.Errorf("key: %w", persistence.ErrCorrupt)), ErrExecution, "", "key: " + persistence.ErrCorrupt.Error()},
		"the store is in doubt":  {persistence.ErrOutcomeUnknown, ErrOutcomeUnknown, "", persistence.ErrOutcomeUnknown.Error()},
		"a request that ended":   {In("load", "", context.Canceled), ErrOutcomeUnknown, "", "load: context canceled"},
		"an error of nobody":     {errors.New("new"), ErrInternal, "", "new"},
		"nothing of the store's": {OfStore(errors.New("new")), ErrInternal, "", "new"},
	} {
		of := Of(c.err)
		assert.True(t, of.Kind == c.kind && of.Reason == c.reason && c.err.Error() == c.text,
			"%s: got %q, %q and %q, want %q, %q and %q", name, of.Kind, of.Reason, c.err, c.kind, c.reason, c.text)
	}
	err := In("send to", "leave", late)
	if !errors.Is(err, ErrQuota) || errors.Is(err, ErrBusy) || Of(err).Wait != time.Second {
		t.Errorf("got %v with the wait %v, want ErrQuota and a second", err, Of(err).Wait)
	}
	of := Of(OfStore(persistence.NotLed(3)))
	assert.True(t, of.Kind == ErrNotLeader && of.Shard == 3, "got %v of the shard %d, want ErrNotLeader of 3", of.Kind, of.Shard)
	assert.Equal(t, ErrOutcomeUnknown, Of(OfStore(&persistence.ShardError{Shard: 3, Err: persistence.ErrLost})).Kind)
	of = Of(In("send to", "leave", Elsewhere(7)))
	assert.True(t, of.Kind == ErrNotLeader && of.Shard == 7, "got %v of the shard %d, want ErrNotLeader of 7", of.Kind, of.Shard)
	assert.True(t, In("send to", "leave", nil) == nil && OfStore(nil) == nil, "nil does not stay nil")
}
