package statemachine

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestEventNamesAreThoseThatACallerCanSend(t *testing.T) {
	d := parseChart(t, `
id: a
events: {zeta: {apply: none}}
stateMachines:
  m:
    states:
      a: {on: {go: b, "pay.*": b, zeta: b, error.execution: b}}
      b: {type: final}
`)
	names := d.EventNames()
	assert.True(t, len(names) == 2 && names[0] == "go" && names[1] == "zeta", "got %v, want go and zeta", names)
}
