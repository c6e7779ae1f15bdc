package templatetest

import (
	"flag"
	"testing"
)

// Repeat makes the next rapid.Check of a test try 2,000 things, or 100,000 when it
// is long, unless -rapid.checks says otherwise.
func Repeat(t *testing.T, long bool) {
	checks := flag.Lookup("rapid.checks")
	if checks.Value.String() != checks.DefValue {
		return
	}
	n := "2000"
	if long {
		n = "100000"
	}
	if err := checks.Value.Set(n); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = checks.Value.Set(checks.DefValue) }) // what it was: it can be read
}
