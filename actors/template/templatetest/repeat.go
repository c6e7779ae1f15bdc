package templatetest

import (
	"flag"
	"testing"
)

// Repeat makes the next rapid.Check of a test try 2,000 things, or 100,000 when it
// is long, unless -rapid.checks is given.
func Repeat(t *testing.T, long bool) {
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	if given {
		return
	}
	n := "2000"
	if long {
		n = "100000"
	}
	checks := flag.Lookup("rapid.checks").Value
	before := checks.String()
	if err := checks.Set(n); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = checks.Set(before) }) // it was read: it can be set
}
