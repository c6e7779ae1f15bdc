package repository

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// TestManyChangesAreBounded holds that more changes than the index remembers become one
// change that stands for anything.
func TestManyChangesAreBounded(t *testing.T) {
	x := newIndex(&Options{Settle: time.Millisecond})
	for i := range pendingMax + 10 {
		x.changed(Change{Folder: "/a", Name: fmt.Sprint(i)})
	}
	changes := x.due(time.Now().Add(time.Second))
	_, anything := changes[Change{}]
	assert.True(t, anything && len(changes) <= 10, "got %d changes, anything among them: %v", len(changes), anything)
	assert.Nil(t, x.due(time.Now().Add(time.Second)))
}

// TestChangesWaitForOthers holds that changes are collected until Settle has passed since
// the first one.
func TestChangesWaitForOthers(t *testing.T) {
	x := newIndex(&Options{Settle: time.Minute})
	before := time.Now()
	x.changed(Change{Folder: "/a"})
	assert.Nil(t, x.due(before.Add(59*time.Second)), "before Settle")
	x.changed(Change{Folder: "/b"})
	x.rested = time.Now().Add(90 * time.Second)
	assert.Nil(t, x.due(time.Now().Add(80*time.Second)), "before the rest is over")
	assert.Len(t, x.due(time.Now().Add(91*time.Second)), 2, "behind both")
}
