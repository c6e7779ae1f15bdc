package workflow_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"troupe/actors/failure"
	"troupe/actors/workflow/workflowtest"
)

const plain = "id: plain\nversion: 1\nstateMachines: {m: {initial: a, states: {a: {on: {go: b}}, b: {type: final}}}}\n"

func version2(text string) string { return strings.Replace(text, "version: 1", "version: 2", 1) }

func TestInstancesStayOnTheirVersion(t *testing.T) {
	h := workflowtest.Start(t, workflowtest.Options{})
	h.Publish(plain)
	old := h.Make(john, "plain", "")
	h.Publish(version2(strings.NewReplacer("initial: a", "initial: c", "a: {on: {go: b}}", "c: {on: {jump: b}}").Replace(plain)))
	fresh := h.Make(john, "plain", "")
	h.Restart()
	assert.Contains(t, string(h.MustSend(john, "plain", old, "go", "").States), `"b"`, "old version's event")
	_, err := h.Try(john, "plain", old, "jump", "", "")
	assert.ErrorIs(t, err, failure.ErrInvalid, "new version's event at an old instance")
	assert.Contains(t, string(h.MustSend(john, "plain", fresh, "jump", "").States), `"b"`, "new version's event")
}

func TestARacingCreateNeverMeetsReplacedContent(t *testing.T) {
	h := workflowtest.Start(t, workflowtest.Options{})
	changed := strings.Replace(plain, "go:", "move:", 1)
	for round := range 20 {
		name := "plain" + strings.Repeat("x", round)
		one := strings.Replace(plain, "id: plain", "id: "+name, 1)
		two := strings.Replace(changed, "id: plain", "id: "+name, 1)
		h.Publish(one)
		var wg sync.WaitGroup
		var id string
		wg.Go(func() { id = h.Make(john, name, "") })
		err := h.Catalog.Publish(h.Sources(two))
		wg.Wait()
		event := "move"
		if err != nil {
			event = "go"
		}
		_, err = h.Try(john, name, id, event, "", "")
		assert.NoError(t, err, "round %d: the content was replaced under an instance", round)
	}
}
