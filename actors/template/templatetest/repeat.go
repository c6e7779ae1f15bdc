package templatetest

import (
	"flag"
	"testing"
)

// Repeat makes the next rapid.Check of a test try 2,000 things, unless -rapid.checks is given.
func Repeat(t *testing.T) {
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	if given {
		return
	}
	checks := flag.Lookup("rapid.checks").Value
	before := checks.String()
	if err := checks.Set("2000"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = checks.Set(before) }) // it was read: it can be set
}
