package storetest

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// Check is one thing that every journal must do.
type Check struct {
	Name string
	// Run returns what is wrong, or nil. It opens journals on file systems of its
	// own and closes them.
	Run func(open Opener) error
}

// Checks is the conformance suite, for those who want to run a part of it.
func Checks() []Check {
	return []Check{
		{"what was appended is visible before its sync", visibleBeforeSync},
		{"the changes of one append come together", changesComeTogether},
		{"an overwritten and a deleted key stay so after a restart", lastChangeWins},
		{"a deleted range goes with all that is in it and nothing else", rangesGo},
		{"a waiter is not told before the log is synced", noAckBeforeDurable},
		{"a crash while a sync hangs takes nothing acknowledged", hangingSyncThenCrash},
		{"what was acknowledged survives a crash", ackedSurvives},
		{"waiters are told in the order of Append", answersInOrder},
		{"every waiter is told exactly once", answeredOnce},
		{"a barrier is told after everything before it", barrierIsLast},
		{"a barrier with nothing to wait for is told", barrierAlone},
		{"an empty append is told", emptyAppend},
		{"many commits wait for one sync without blocking Append", manyInFlight},
		{"counters add up under concurrency and after a crash", countersAddUp},
		{"Close waits for what was appended", closeWaits},
		{"an append after Close is refused and leaves nothing", refusedAfterClose},
	}
}

// Run is the conformance suite as subtests.
func Run(t *testing.T, open Opener) {
	t.Helper()
	for _, c := range Checks() {
		t.Run(c.Name, func(t *testing.T) {
			assert.NoError(t, c.Run(open))
		})
	}
}
