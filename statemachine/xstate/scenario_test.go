package xstate

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/statemachine"
)

// TestScenarios runs the files of testdata/scenario: "import" shows the YAML of a machine, or the faults, and "export"
// the JSON of a definition; warnings stand behind either.
func TestScenarios(t *testing.T) {
	datadriven.Walk(t, filepath.Join("testdata", "scenario"), func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, cmd *datadriven.TestData) string {
			var b strings.Builder
			switch cmd.Cmd {
			case "import":
				files, err := Import("machine.json", []byte(cmd.Input))
				if err != nil {
					return err.Error() + "\n"
				}
				for _, f := range files {
					b.Write(f.Text)
					for _, w := range f.Warnings {
						fmt.Fprintf(&b, "warning %v\n", w)
					}
				}
			case "export":
				machine, warnings, err := Export(statemachine.Source{File: "workflow.yaml", Text: []byte(cmd.Input)})
				if err != nil {
					return err.Error() + "\n"
				}
				b.Write(machine)
				for _, w := range warnings {
					fmt.Fprintf(&b, "warning %v\n", w)
				}
			default:
				t.Fatalf("unknown command %q", cmd.Cmd)
			}
			return strings.ReplaceAll(b.String(), "\n\n", "\n.\n")
		})
	})
}

// TestTheDocumentsExampleDoesWhatItSays imports the machine of statemachine/DEFINITION.md, "XState".
func TestTheDocumentsExampleDoesWhatItSays(t *testing.T) {
	_, section, found := strings.Cut(string(load(t, "../DEFINITION.md")), "\n### XState\n")
	_, example, fenced := strings.Cut(section, "```json\n")
	example, _, closed := strings.Cut(example, "```")
	require.True(t, found && fenced && closed, "the document has no example")
	files, err := Import("counter.json", []byte(example))
	require.True(t, err == nil && len(files[0].Warnings) <= 0, "Import: %v %v", err, files)
	p := newPlay(t, files[0].Text)
	for range 7 {
		p.take(reached{Send: "add"})
	}
	assert.Equal(t, `{"count":10}`, string(p.in.Public), "seven times add")
	hour := 3_600_000
	if p.take(reached{Wait: &hour}); !p.d.IsDone(&p.in) {
		t.Errorf("after an hour the machine is at %s, want done", p.d.States(&p.in))
	}
}

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
