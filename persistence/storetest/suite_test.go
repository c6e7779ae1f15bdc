package storetest_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"troupe/persistence"
	"troupe/persistence/storetest"
)

// suiteOptions are those of a small store: each check opens several.
var suiteOptions = persistence.Options{Shards: 4, MemTableBytes: 1 << 20, CacheBytes: 1 << 20, FreeBytesMin: -1}

func TestTheStorePassesTheSuite(t *testing.T) {
	storetest.Run(t, storetest.Store(suiteOptions))
}

func TestTheSuiteFindsAnEarlyAcknowledgement(t *testing.T) {
	finders := []string{
		"a waiter is not told before the log is synced",
		"a crash while a sync hangs takes nothing acknowledged",
		"what was acknowledged survives a crash",
	}
	found := 0
	for _, c := range storetest.Checks() {
		if !slices.Contains(finders, c.Name) {
			continue
		}
		assert.Error(t, c.Run(storetest.EarlyAck(storetest.Store(suiteOptions))), "a journal that acknowledges early passes %q", c.Name)
		found++
	}
	assert.Equal(t, len(finders), found, "the suite, %q", finders)
}
