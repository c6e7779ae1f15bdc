package formportal

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/actors/form"
)

// TestOneOfTwoSubmissions: of many at the same time one is taken.
func TestOneOfTwoSubmissions(t *testing.T) {
	h := newHouse(t)
	id := h.create("john", "leave-form", "leave")
	_, err := h.save("john", "leave", id, `{"days":1}`)
	require.NoError(t, err)
	var taken atomic.Int64
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if _, err := h.submit("john", "leave", id, `{"days":1}`, ""); err == nil {
				taken.Add(1)
			} else if !errors.Is(err, failure.ErrNotAllowed) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if v := h.view("john", "leave", id); taken.Load() != 1 || v.Sequence != 2 || v.Draft != nil {
		t.Errorf("%d were taken, %+v", taken.Load(), v)
	}
}

// TestADraftThatKnowsNoTemplate: the times tell.
func TestADraftThatKnowsNoTemplate(t *testing.T) {
	of := &Template{Modified: time.UnixMilli(10), Digest: form.DigestOf([]byte("x"))}
	for _, c := range []struct {
		draft form.Draft
		want  bool
	}{
		{form.Draft{SavedAt: 9}, true},
		{form.Draft{SavedAt: 10}, false},
		{form.Draft{SavedAt: 9, Template: of.Digest}, false},
		{form.Draft{SavedAt: 11, Template: form.DigestOf([]byte("y"))}, true},
	} {
		assert.Equal(t, c.want, isForAnother(&c.draft, of), c.draft)
	}
}
