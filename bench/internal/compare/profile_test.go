package compare

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
)

// TestPartsAreAskedInOrder: what serves others is counted where it happens, and the rest
// by who asked for it.
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

// TestPartsNameWhatThereIs: a function of ours that has another name now would be counted
// elsewhere.
func TestPartsNameWhatThereIs(t *testing.T) {
	for _, p := range parts {
		for _, frame := range p.frames {
			inTree, ours := strings.CutPrefix(frame, "troupe/")
			if !ours {
				continue
			}
			slash := strings.LastIndexByte(inTree, '/') + 1
			name, function, _ := strings.Cut(inTree[slash:], ".")
			if !declares(t, filepath.Join("..", "..", "..", inTree[:slash], name), function) {
				t.Errorf("%s: there is no %s", p.name, frame)
			}
		}
	}
}

// declares reports whether a package has a function whose name in a profile begins so.
func declares(t *testing.T, dir, function string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			d, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			name := d.Name.Name
			if d.Recv != nil {
				name = fmt.Sprintf("(%s).%s", types.ExprString(d.Recv.List[0].Type), name)
			}
			if strings.HasPrefix(name, function) {
				return true
			}
		}
	}
	return false
}
