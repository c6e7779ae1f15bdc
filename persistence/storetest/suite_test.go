package storetest_test

import (
	"slices"
	"testing"

	"troupe/persistence"
	"troupe/persistence/storetest"
)

func TestTheStorePassesTheSuite(t *testing.T) {
	if mutant {
		t.Skip("this build acknowledges early")
	}
	storetest.Run(t, storetest.Store(persistence.Options{FreeBytesMin: -1}))
}

func TestTheSuiteFindsAnEarlyAcknowledgement(t *testing.T) {
	var found []string
	for _, c := range storetest.Checks() {
		if c.Run(storetest.EarlyAck(storetest.Store(persistence.Options{FreeBytesMin: -1}))) != nil {
			found = append(found, c.Name)
		}
	}
	for _, want := range []string{
		"a waiter is not told before the log is synced",
		"a crash while a sync hangs takes nothing acknowledged",
		"what was acknowledged survives a crash",
	} {
		if !slices.Contains(found, want) {
			t.Errorf("a journal that acknowledges early passes %q", want)
		}
	}
	t.Logf("caught by %q", found)
}
