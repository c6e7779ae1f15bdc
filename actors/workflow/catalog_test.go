package workflow

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"troupe/actors/failure"
	"troupe/statemachine/document"
)

const plain = "id: plain\nversion: 1\nstateMachines: {m: {initial: a, states: {a: {on: {go: b}}, b: {type: final}}}}\n"

func version2(text string) string { return strings.Replace(text, "version: 1", "version: 2", 1) }

func TestInstancesStayOnTheirVersion(t *testing.T) {
	h := newHouse(t, Options{})
	h.publish(plain)
	old := h.create(john, "plain", "")
	h.publish(version2(strings.ReplaceAll(plain, "a: {on", "c: {on")[:0] + strings.Replace(strings.Replace(plain, "initial: a", "initial: c", 1), "a: {on: {go: b}}", "c: {on: {jump: b}}", 1)))
	fresh := h.create(john, "plain", "")
	h.restart()
	if got := string(h.mustSend(john, "plain", old, "go", "", "").Tail); !strings.Contains(got, `"b"`) {
		t.Errorf("old version's event: got %s", got)
	}
	if _, err := h.send(john, "plain", old, "jump", "", ""); !errors.Is(err, failure.ErrInvalid) {
		t.Errorf("new version's event at an old instance: got %v", err)
	}
	if got := string(h.mustSend(john, "plain", fresh, "jump", "", "").Tail); !strings.Contains(got, `"b"`) {
		t.Errorf("new version's event: got %s", got)
	}
}

func TestChangedContentUnderAnOldVersion(t *testing.T) {
	h := newHouse(t, Options{})
	changed := strings.Replace(plain, "go:", "move:", 1)
	h.publish(plain)
	h.publish(changed) // nobody uses version 1 yet
	id := h.create(john, "plain", "")
	h.mustSend(john, "plain", id, "move", "", "")
	var faults document.Faults
	err := h.catalog.Publish(sources(t, order, plain))
	if !errors.As(err, &faults) || !strings.Contains(err.Error(), "raise version to 2") {
		t.Errorf("got %v, want a fault that advises to raise the version", err)
	}
	h.restart()
	if err := h.catalog.Publish(sources(t, plain)); err == nil {
		t.Error("after a restart the changed content was taken")
	}
	h.publish(changed)
	h.publish(version2(plain))
	if err := h.catalog.Publish(sources(t, plain)); err == nil || !strings.Contains(err.Error(), "raise version to 3") {
		t.Errorf("with a version 2 in the store: got %v, want a fault that advises a version that is free", err)
	}
}

func TestAWorkflowWithoutItsFileTakesEventsAndNoCreates(t *testing.T) {
	h := newHouse(t, Options{})
	h.publish(plain)
	id := h.create(john, "plain", "")
	h.publish(order)
	if _, err := h.Create(t.Context(), &CreateRequest{Caller: john, WorkflowID: "plain"}); !errors.Is(err, failure.ErrNotFound) {
		t.Errorf("create: got %v, want ErrNotFound", err)
	}
	h.restart()
	h.mustSend(john, "plain", id, "go", "", "")
	if n := h.catalog.Len(); n != 1 {
		t.Errorf("%d workflows are listed, want 1", n)
	}
}

func TestARacingCreateNeverMeetsReplacedContent(t *testing.T) {
	h := newHouse(t, Options{})
	changed := strings.Replace(plain, "go:", "move:", 1)
	for round := range 20 {
		name := "plain" + strings.Repeat("x", round)
		one := strings.Replace(plain, "id: plain", "id: "+name, 1)
		two := strings.Replace(changed, "id: plain", "id: "+name, 1)
		h.publish(one)
		var wg sync.WaitGroup
		var id string
		wg.Go(func() { id = h.create(john, name, "") })
		err := h.catalog.Publish(sources(t, two))
		wg.Wait()
		event := "go"
		if err == nil && h.created(name, "move", id) {
			event = "move"
		}
		if err == nil && event != "move" {
			t.Errorf("round %d: the content was replaced under an instance", round)
		}
		if err != nil {
			h.mustSend(john, name, id, "go", "", "")
		}
	}
}

// created reports whether the instance takes the event, now and after sleep.
func (h *house) created(workflow, event, id string) bool {
	h.sleepAll()
	_, err := h.send(john, workflow, id, event, "", "")
	return err == nil
}
