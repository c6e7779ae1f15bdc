package cluster

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestDiffering(t *testing.T) {
	got := differing(map[string]string{"a": "1", "b": "2", "c": "3"}, map[string]string{"b": "2", "c": "4", "d": "5"})
	want := []string{"a", "c", "d"}
	assert.True(t, slices.Equal(got, want), "got %v, want %v", got, want)
	assert.Nil(t, differing(nil, map[string]string{"a": "1"}))
	var heard heartbeat
	text, err := json.Marshal(heartbeat{Changed: map[string]string{}})
	if err == nil {
		err = json.Unmarshal(text, &heard)
	}
	assert.True(t, err == nil && heard.Changed != nil, "a node with defaults alone says %s, %v", text, err)
}
