package repository

import (
	"fmt"
	"testing"
	"time"
)

// TestManyChangesAreBounded holds that more changes than the index remembers become one
// change that stands for anything.
func TestManyChangesAreBounded(t *testing.T) {
	x := newIndex(&Options{Settle: time.Millisecond})
	for i := range pendingMax + 10 {
		x.changed(Change{Folder: "/a", Name: fmt.Sprint(i)})
	}
	changes := x.due(time.Now().Add(time.Second))
	if _, anything := changes[Change{}]; !anything || len(changes) > 10 {
		t.Errorf("got %d changes, anything among them: %v", len(changes), anything)
	}
	if again := x.due(time.Now().Add(time.Second)); again != nil {
		t.Errorf("got %d changes twice", len(again))
	}
}

// TestChangesWaitForOthers holds that changes are collected until Settle has passed since
// the first one.
func TestChangesWaitForOthers(t *testing.T) {
	x := newIndex(&Options{Settle: time.Minute})
	before := time.Now()
	x.changed(Change{Folder: "/a"})
	if got := x.due(before.Add(59 * time.Second)); got != nil {
		t.Errorf("before Settle: got %v", got)
	}
	x.changed(Change{Folder: "/b"})
	x.rested = time.Now().Add(90 * time.Second)
	if got := x.due(time.Now().Add(80 * time.Second)); got != nil {
		t.Errorf("before the rest is over: got %v", got)
	}
	if got := x.due(time.Now().Add(91 * time.Second)); len(got) != 2 {
		t.Errorf("behind both: got %v, want two changes", got)
	}
}
