package compare

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"troupe/bench/internal/ceiling"
	"troupe/bench/internal/harness"
	"troupe/bench/load"
	"troupe/bench/record"
)

// TestMain makes this test binary a ceiling when it is started as one: compare
// starts itself. With the commands of troupe it is a server that has empty lists.
func TestMain(m *testing.M) {
	command := ""
	if len(os.Args) > 1 {
		command = os.Args[1]
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var err error
	switch {
	case command == ceilingCommand:
		err = serveCeiling(ctx, harness.New(ceilingCommand, os.Args[2:], io.Discard, os.Stderr))
	case command == "token":
		_, err = os.Stdout.WriteString("secret\n")
	case command == "serve":
		err = serve(ctx, os.Args[2:])
	default:
		stop()
		goleak.VerifyTestMain(m)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

func serve(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	listen := flags.String("listen", "", "")
	flags.String("home", "", "")
	flags.String("admin", "", "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	s, err := ceiling.Open("")
	if err != nil {
		return err
	}
	server := &http.Server{Addr: *listen, ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/workflow/api/v1/instances/") {
			fmt.Fprint(w, `{"instances":[]}`)
		} else {
			s.ServeHTTP(w, r)
		}
	})}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return s.Close()
}

// planOf is the plan of some arguments, in a folder of its own.
func planOf(t *testing.T, args []string) (*plan, error) {
	h := harness.New("compare", args, io.Discard, io.Discard)
	h.Dir = t.TempDir()
	return parsePlan(h)
}

// TestQueriesLastAsLongAsTheEvents: all that are due in the window of the events are sent, in
// the first run, which makes the instances that they find, as in later ones.
func TestQueriesLastAsLongAsTheEvents(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	t.Setenv("GORACE", os.Getenv("GORACE")+" atexit_sleep_ms=0")
	p, err := planOf(t, []string{
		"-targets", "troupe", "-against", self, "-queries", "100", "-rounds", "2", "-duration", "100ms", "-warmup", "10ms",
		"-connections", "2", "-instances", "8",
	})
	require.NoError(t, err)
	p.targets = []string{otherTarget}
	require.NoError(t, p.readQueries())
	all, stop, err := p.startTargets(t.Context())
	defer stop()
	require.NoError(t, err)
	samples, err := p.measure(t.Context(), all)
	require.True(t, err == nil && len(samples) == 4, "got %d samples, %v", len(samples), err)
	for _, s := range samples {
		if s.queries == nil {
			continue
		}
		if got := s.queries.All.Count + s.queries.Missed; got != 10 || s.queries.ErrorsTotal > 0 {
			t.Errorf("round %d: got %d queries, want 10; errors %v", s.round, got, s.queries.Errors)
		}
	}
	assert.Contains(t, p.report(samples), "### Beside 100 queries/s for what is in the node approved")
}

// TestARunLeavesARecordAndNothingElse starts both ceilings as processes. The load
// generator accepts their answers of whatever kinds it drew: an error is a failure.
func TestARunLeavesARecordAndNothingElse(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	record := filepath.Join(t.TempDir(), "record.md")
	var out, errs bytes.Buffer
	err := Commands[0].Main(t.Context(), []string{
		"-targets", "http,durable", "-rounds", "2", "-duration", "100ms", "-warmup", "10ms", "-connections", "2,4",
		"-instances", "8", "-replies", "full,minimal", "-mix", "create=1,event=8,read=1", "-o", record,
	}, &out, &errs)
	require.NoError(t, err, errs.String())
	text, err := os.ReadFile(record)
	require.NoError(t, err)
	for _, part := range []string{
		"| Command | `go run ./bench compare -targets http,durable", "| Commit |", "| Machine |", "go1.", "| Write and sync of 4 KiB | p50 ",
		"## 2 connections, minimal replies", "## 4 connections", "| durable |", "1.00–1.00–1.00",
	} {
		assert.Contains(t, string(text), part, "the record lacks")
	}
	assert.True(t, strings.HasSuffix(string(text), out.String()), "the record does not end with what was printed")
	left, err := os.ReadDir(dir)
	assert.True(t, err == nil && len(left) <= 0, "left behind: %v, %v", left, err)
}

func TestAPlanHasACellForEachCombination(t *testing.T) {
	p, err := planOf(t, []string{"-connections", "16,64", "-replies", "full,minimal", "-batch", "100,1000", "-against", "x"})
	require.NoError(t, err)
	want := []cell{
		{16, false, 0},
		{16, true, 0},
		{16, true, 100},
		{16, true, 1000},
		{64, false, 0},
		{64, true, 0},
		{64, true, 100},
		{64, true, 1000},
	}
	assert.True(t, slices.Equal(p.cells, want), "got %v, want %v", p.cells, want)
	if want := []string{"http", "durable", "troupe", "other"}; !slices.Equal(p.targets, want) {
		t.Errorf("got %v, want %v", p.targets, want)
	}
}

// TestRatiosAreWithinARound plants rounds of which the second is ten times
// slower for both: a ratio of medians would not show that they are equal.
func TestRatiosAreWithinARound(t *testing.T) {
	at := func(target string, round int, rate float64) *sample {
		return &sample{target: target, round: round, Result: &load.Result{OperationsPerSecond: rate}}
	}
	base := []*sample{at("durable", 1, 1000), at("durable", 2, 100), at("durable", 3, 2000)}
	mine := []*sample{at("troupe", 2, 100), at("troupe", 1, 1000), at("troupe", 3, 1000)}
	assert.Equal(t, (record.Spread{Least: 0.5, Middle: 1, Most: 1}), ratios(mine, base, perSecond))
	assert.Equal(t, record.Spread{}, ratios(mine, nil, perSecond), "without a base")
}

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
