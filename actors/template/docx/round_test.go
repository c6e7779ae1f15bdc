package docx

import (
	"bytes"
	"flag"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"troupe/actors/template/param"
	"troupe/actors/template/templatetest"
)

var long = flag.Bool("long", false, "check 100,000 random documents")

func TestMain(m *testing.M) {
	flag.Parse()
	if checks := flag.Lookup("rapid.checks"); checks.Value.String() == checks.DefValue {
		n := "2000"
		if *long {
			n = "100000"
		}
		if err := flag.Set("rapid.checks", n); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

func parse(file []byte) ([]param.Param, error) {
	return Parameters(bytes.NewReader(file), int64(len(file)), param.Limits{})
}

// TestWhatGoesInComesOut writes random parameters into random documents and
// expects exactly them.
func TestWhatGoesInComesOut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		params := rapid.SliceOfN(templatetest.Param(), 0, 8).Draw(t, "params")
		chance := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		file, want := templatetest.Document(chance, params)
		got, err := parse(file)
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("got  %q, %v\nwant %q", got, err, want)
		}
	})
}
