package workflow_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"troupe/actors/workflow"
)

// TestAwakeInstancesHaveABound in bytes, however fast they come, and nothing is lost
// when they go to sleep early.
func TestAwakeInstancesHaveABound(t *testing.T) {
	const bound, large = 8 << 20, 200 << 10
	h := start(t, workflow.Options{AwakeBytesMax: bound, IdleAfter: time.Hour}) // so that only the bound puts instances to sleep
	h.Publish(leave, order, stock("stock", 1))
	small := make([]string, 100)
	for i := range small {
		small[i] = h.Make(john, "leave", "")
	}
	ids := make([]string, 200)
	var most int64
	for i := range ids {
		ids[i] = h.Make(boss, "stock", fmt.Sprintf(`{"a":%d,"text":%q}`, i, strings.Repeat("x", large)))
		most = max(most, h.Metrics().AwakeBytes)
	}
	if most > 2*bound {
		t.Errorf("awake instances took %d MB, want %d", most>>20, bound>>20)
	}
	if m := h.Metrics(); m.Awake < 100 {
		t.Errorf("%d are awake: small ones went to sleep while large ones were there", m.Awake)
	}
	var all sync.WaitGroup
	for part := range 4 { // reading wakes them
		all.Go(func() {
			for i := part; i < len(ids); i += 4 {
				r := h.MustLook(boss, "stock", ids[i])
				if want := fmt.Sprintf(`"a":%d,`, i); !strings.Contains(string(r.Head), want) {
					t.Errorf("%s: no %s in %.100s", ids[i], want, r.Head)
				}
			}
		})
	}
	all.Wait()
	for late := time.Now().Add(10 * time.Second); h.Metrics().AwakeBytes > bound; <-time.After(time.Millisecond) {
		if time.Now().After(late) {
			t.Fatalf("awake instances take %d MB, want %d", h.Metrics().AwakeBytes>>20, bound>>20)
		}
	}
	h.sleepAll()
}

// TestManySmallInstancesHaveABound, too.
func TestManySmallInstancesHaveABound(t *testing.T) {
	h := start(t, workflow.Options{AwakeBytesMax: 100 * workflow.InstanceBytes})
	for range 300 {
		h.Make(john, "leave", "")
	}
	h.SweepAfter(0)
	if m := h.Metrics(); m.Awake > 75 {
		t.Errorf("%d are awake, want 75", m.Awake)
	}
}
