package docx

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"troupe/actors/template/param"
	"troupe/actors/template/templatetest"
)

func parse(file []byte) ([]param.Param, error) {
	return Parameters(bytes.NewReader(file), int64(len(file)), param.Limits{})
}

// TestWhatGoesInComesOut writes random parameters into random documents and
// expects exactly them.
func TestWhatGoesInComesOut(t *testing.T) {
	templatetest.Repeat(t)
	rapid.Check(t, func(t *rapid.T) {
		params := rapid.SliceOfN(templatetest.Param(), 0, 8).Draw(t, "params")
		chance := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		file, want := templatetest.Document(chance, params)
		got, err := parse(file)
		require.True(t, err == nil && slices.Equal(got, want), "got  %q, %v\nwant %q", got, err, want)
	})
}
