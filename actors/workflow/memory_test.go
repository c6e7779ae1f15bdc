package workflow_test

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"troupe/actors/instance"
	"troupe/actors/workflow"
	"troupe/actors/workflow/workflowtest"
)

// TestAwakeInstancesHaveABound in bytes, however fast they come, and nothing is lost
// when they go to sleep early.
func TestAwakeInstancesHaveABound(t *testing.T) {
	const bound, large = 2 << 20, 50 << 10
	h := start(t, workflow.Options{AwakeBytesMax: bound, IdleAfter: time.Hour}) // so that only the bound puts instances to sleep
	h.Publish(leave, order, stock("stock", 1))
	small := make([]string, 100)
	for i := range small {
		small[i] = h.Make(john, "leave", "")
	}
	inBounds := func() bool { return h.Metrics().AwakeBytes <= bound }
	ids := make([]string, 120)
	for i := range ids {
		ids[i] = h.Make(boss, "stock", fmt.Sprintf(`{"a":%d,"text":%q}`, i, strings.Repeat("x", large)))
		workflowtest.Await(t, "the bound", inBounds) // a large one is always there to end
	}
	assert.GreaterOrEqual(t, h.Metrics().Awake, int64(100), "are awake: small ones went to sleep while large ones were there")
	var all sync.WaitGroup
	for part := range 4 { // reading wakes them
		all.Go(func() {
			for i := part; i < len(ids); i += 4 {
				r := h.MustLook(boss, "stock", ids[i])
				if want := fmt.Sprintf(`"a":%d,`, i); !strings.Contains(string(r.Public), want) {
					t.Errorf("%s: no %s in %.100s", ids[i], want, r.Public)
				}
			}
		})
	}
	all.Wait()
	workflowtest.Await(t, "the bound", inBounds)
	h.sleepAll()
}

// TestManySmallInstancesHaveABound, too.
func TestManySmallInstancesHaveABound(t *testing.T) {
	h := start(t, workflow.Options{AwakeBytesMax: 100 * instance.InstanceBytes})
	for range 300 {
		h.Make(john, "leave", "")
	}
	h.SweepAfter(0)
	workflowtest.Await(t, "75 are awake", func() bool { return h.Metrics().Awake <= 75 })
}

// TestAnAwakeInstanceIsSmall: Go sets aside 512 bytes for the actor's part, and 576 for one byte more. There are a million of them, and the
// collector looks through each.
func TestAnAwakeInstanceIsSmall(t *testing.T) {
	of := reflect.TypeFor[instance.Actor]()
	assert.LessOrEqual(t, of.Size(), uintptr(512))
	row, _ := of.FieldByName("creatorRow")
	for k := range row.Type.NumField() {
		f := row.Type.Field(k)
		assert.NotEqual(t, reflect.Pointer, f.Type.Kind(), "it keeps %s of its row apart", f.Name)
	}
}
