package xstate

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"troupe/statemachine"
	"troupe/statemachine/cputest"
	"troupe/statemachine/document"
)

// FuzzImport holds that no bytes make Import panic or take long, that what it returns can be parsed, and that it comes
// back from an export.
func FuzzImport(f *testing.F) {
	files, err := filepath.Glob("testdata/*/*.json")
	require.NoError(f, err)
	exported, err := filepath.Glob("testdata/exported/definition/*.json")
	require.NoError(f, err)
	for _, file := range append(files, exported...) {
		text, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(text)
	}
	for _, text := range []string{
		`{"initial":"a","states":{"a":{"on":{"*":".b","x.*":{}},"initial":"b","states":{"b":{}},"onDone":"a"}}}`,
		`{"on":{"a":{"guard":"g"}},"guards":{"g":{"type":"and","guards":["h","h"]},"h":"true"}}`,
		`{"type":"parallel","states":{"a":{"type":"history"},"b":{"initial":"a","states":{"a":{}}}},"meta":{"troupe":{"definition":{},"machines":true}}}`,
		`{"on":{"a":{"actions":{"type":"l","params":{"x":"\u2028\ufeff"}}}},"actions":{"l":{"log":"${params.x}"}}}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		watched := cputest.Watch()
		out, err := Import("machine.json", text)
		require.LessOrEqual(t, watched(), 20*time.Second, "Import took, %d", len(text))
		if err != nil {
			var faults document.Faults
			require.True(t, errors.As(err, &faults) && len(faults) != 0, "Import(%q): %v, want Faults", text, err)
			return
		}
		for _, file := range out {
			checkComesBack(t, file)
		}
	})
}

func checkComesBack(t *testing.T, file File) {
	definition, err := document.Parse("w.yaml", file.Text)
	require.True(t, err == nil && definition.Field("id").Text == file.ID, "%s is no definition of %s: %v", file.Text, file.ID, err)
	machine, _, err := Export(statemachine.Source{File: "w.yaml", Text: file.Text}) // which parses it
	require.NoError(t, err, "Export(%s)", file.Text)
	_, err = Import("again.json", machine)
	require.NoError(t, err, "%s\n%s does not come back", file.Text, machine)
}
