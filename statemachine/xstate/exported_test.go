package xstate

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/statemachine"
)

var rewriteExports = flag.Bool("rewrite-exports", false, "write testdata/exported anew")

// sources returns the definitions whose exports are kept in testdata/exported, by the names of their exports. The
// events of a name are in the folder of the source.
func sources(t *testing.T) map[string]statemachine.Source {
	t.Helper()
	out := map[string]statemachine.Source{}
	for _, name := range machines(t, "machine") {
		out[filepath.Join("machine", filepath.Base(name))] = statemachine.Source{File: "w.yaml", Text: imported(t, name).Text}
	}
	for _, name := range machines(t, "definition") {
		out[filepath.Join("definition", filepath.Base(name))] = statemachine.Source{File: "w.yaml", Text: load(t, name+".yaml")}
	}
	return out
}

// TestXStateReachesWhatExportedDefinitionsReach exports definitions, compares with the files that the npm package xstate
// has run (.ci/xstate), and plays the definitions against what it reached.
func TestXStateReachesWhatExportedDefinitionsReach(t *testing.T) {
	for name, src := range sources(t) {
		t.Run(name, func(t *testing.T) {
			machine, _, err := Export(src)
			require.NoError(t, err)
			file := filepath.Join("testdata", "exported", name)
			if *rewriteExports {
				require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o777))
				require.NoError(t, os.WriteFile(file+".json", machine, 0o666))
				return
			}
			assert.Equal(t, string(machine), string(load(t, file+".json")), file)
			p := newPlay(t, src.Text)
			nodeOf := namesOf(t, machine)
			for i, line := range recording(t, file) {
				p.take(line)
				for _, difference := range p.compare(line, nodeOf) {
					if strings.HasPrefix(difference, "output") {
						continue // XState has that of the root alone
					}
					t.Errorf("line %d: %s", i+2, difference)
				}
			}
		})
	}
}
