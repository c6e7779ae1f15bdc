// Package fixedseed gives the property tests of pgregory.net/rapid one seed, so that a run of all tests finds what
// the run before found. Packages whose tests draw by rapid import it for that alone. `make random` takes other seeds.
package fixedseed

import (
	"flag"

	_ "pgregory.net/rapid" // its init defines the flag
)

// Before the command line is read: -rapid.seed=0 takes another seed each time.
func init() { //nolint:gochecknoinits // a TestMain would be code in each of the packages
	if err := flag.Set("rapid.seed", "2"); err != nil {
		panic(err)
	}
}
