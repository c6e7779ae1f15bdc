package config

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestSettingsThatDifferAreNamed, as far as they are not the default and may not differ.
func TestSettingsThatDifferAreNamed(t *testing.T) {
	a, b := New(), New()
	a.mail.Host, a.Workflow.Quotas.HistoryEntries, a.Cluster.Name, a.Gateway.Addr = "mail.example.com", 7, "berlin-1", "127.0.0.1:1"
	all, changed := a.sharedSettings()
	other, none := b.sharedSettings()
	names := slices.Sorted(maps.Keys(changed))
	assert.True(t, all != other && len(none) == 0 && slices.Equal(names, []string{"mail.host", "quota.historyEntries"}), "got %v, %v", changed, none)
	assert.NoError(t, isNodeName("berlin 1"))
	assert.True(t, isNodeName("a\nb") != nil && isNodeName(strings.Repeat("x", 65)) != nil, "a name that fits into no list is taken")
}
