package compare

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestPartsAreAskedInOrder: what serves others is counted where it happens, and the rest by who asked for it.
func TestPartsAreAskedInOrder(t *testing.T) {
	const handler, step = "troupe/gateway.(*exchange).run", "troupe/statemachine.(*Definition).Step"
	p := &profile.Profile{}
	want := map[string]float64{}
	cases := []struct {
		part  string
		stack []string // the innermost first
	}{
		{"garbage collection", []string{"runtime.gcAssistAlloc", "runtime.mallocgc", step, handler, "net/http.(*conn).serve"}},
		{"allocation", []string{"runtime.mallocgc", step, handler, "net/http.(*conn).serve"}},
		{"step of the statechart", []string{step, handler, "net/http.(*conn).serve"}},
		{"handler, the rest", []string{handler, "net/http.(*conn).serve"}},
		{"net/http: the rest", []string{"net/http.(*conn).serve"}},
		{"applier and committer", []string{"runtime.memmove", "troupe/persistence.(*group).add", "troupe/persistence.(*Store).applyLoop"}},
		{"batch and commit pipeline", []string{"github.com/cockroachdb/pebble/v2.(*Batch).Apply", "troupe/persistence.(*group).add", "troupe/persistence.(*Store).applyLoop"}},
		{"actor and mailbox", []string{"sync.(*Mutex).Lock", "troupe/actors/internal/mailbox.(*Mailbox).process"}},
		{"everything else", []string{"main.main"}},
		{"everything else", nil},
		{"log: write and sync", []string{"syscall.fdatasync", "github.com/cockroachdb/pebble/v2/vfs.(*syncingFile).Sync", "github.com/cockroachdb/pebble/v2/record.(*LogWriter).flushLoop"}},
	}
	for _, c := range cases {
		s := &profile.Sample{Value: []int64{1, 10}}
		for _, f := range c.stack {
			s.Location = append(s.Location, &profile.Location{Line: []profile.Line{{Function: &profile.Function{Name: f}}}})
		}
		p.Sample = append(p.Sample, s)
		want[c.part] += 10
	}
	for i, share := range sharesOf(p) {
		if want := want[parts[i].name] / float64(10*len(cases)); share != want {
			t.Errorf("%s: got a share of %v, want %v", parts[i].name, share, want)
		}
	}
}

// TestPartsNameWhatThereIs: a function of ours that has another name now would be counted elsewhere.
func TestPartsNameWhatThereIs(t *testing.T) {
	ours := functions(t)
	for _, p := range parts {
		for _, frame := range p.frames {
			assert.False(t, strings.HasPrefix(frame, "troupe/") && !slices.ContainsFunc(ours, func(name string) bool { return isOf(name, frame) }),
				"%s: there is no %s", p.name, frame)
		}
	}
}

// functions are those of the tree, as profiles name them.
func functions(t *testing.T) (names []string) {
	t.Helper()
	const top = "../../.."
	for _, folder := range []string{"actors", "bench", "gateway", "persistence", "statemachine"} {
		err := filepath.WalkDir(filepath.Join(top, folder), func(file string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.Name() == "node_modules":
				return fs.SkipDir
			case filepath.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go"):
				return nil
			}
			f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			in, err := filepath.Rel(top, filepath.Dir(file))
			for _, d := range f.Decls {
				if d, ok := d.(*ast.FuncDecl); ok {
					name := d.Name.Name
					if d.Recv != nil {
						name = fmt.Sprintf("(%s).%s", types.ExprString(d.Recv.List[0].Type), name)
					}
					names = append(names, "troupe/"+filepath.ToSlash(in)+"."+name)
				}
			}
			return err
		})
		require.NoError(t, err)
	}
	return names
}
