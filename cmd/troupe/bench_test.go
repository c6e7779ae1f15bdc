package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/bench/load"
	"troupe/bench/report"
	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/clitest"
)

// measured is the report of a measurement, in longer windows for as long as too little was answered: a machine
// may stand still for a while.
func measured(t *testing.T, args ...string) (window time.Duration, rep report.Report) {
	t.Helper()
	for window = 300 * time.Millisecond; ; window *= 5 {
		code, stdout, stderr := clitest.Invoke(slices.Concat([]string{"bench", "--duration", window.String(), "--warmup", "0s", "-o", "json"}, args)...)
		rep = report.Report{}
		err := json.Unmarshal([]byte(stdout), &rep)
		require.True(t, err == nil && len(rep.Runs) != 0, "%q: got code %d, %v, %s\n%s", args, code, err, stderr, stdout)
		little := slices.ContainsFunc(rep.Runs, func(r *report.Run) bool { return r.Requests < 20 && r.ErrorsTotal == 0 })
		require.False(t, !little && code != cli.ExitDone, "%q: got code %d, %s\n%s", args, code, stderr, stdout)
		if !little || window > 30*time.Second {
			return window, rep
		}
	}
}

// TestBench measures two servers of its own with the scenario in the tree and every kind
// of request. What is asserted are counts: 200 requests are due in each second.
func TestBench(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts servers")
	}
	self, err := os.Executable()
	require.NoError(t, err)
	temporary, page := t.TempDir(), filepath.Join(t.TempDir(), "bench.html")
	t.Setenv(asProgram, "1")
	t.Setenv("TMPDIR", temporary)
	window, rep := measured(t, "--scenario", "../../bench/scenarios/leave-request.yaml", "--mix", "create=1,event=8,read=1,query=0.5",
		"--rate", "200", "--connections", "4", "--instances", "8", "--against", self, "--rounds", "1",
		"--fail-if", "errors>0,missed>10000,shed>10000,cpu>10s", "--report", page)
	require.Len(t, rep.Runs, 2)
	for _, r := range rep.Runs {
		want := 200 * window.Milliseconds() / 1000
		due := r.InLatencies() + r.Missed + r.Shed
		assert.True(t, due == want && r.ErrorsTotal == 0 && r.Requests != 0 && r.Operations == r.Requests, "%v %v %v %v", r.Target, due, want, r.Errors)
		assert.True(t, r.Kinds["event"].Count != 0 && len(r.Series) != 0 && len(r.Percentiles) != 0 && r.ServerCPUCores != nil, "%s: got %+v", r.Target, r)
	}
	assert.True(t, rep.Load.Workflow == "leave-request" && rep.Targets[0].Local && rep.Targets[0].Build != "" && len(rep.Ratios) >= 3 && len(rep.Thresholds) == 4, rep)
	if _, rep = measured(t, "--batch", "5", "--connections", "2", "--instances", "10"); len(rep.Runs) != 1 || rep.Runs[0].ErrorsTotal > 0 {
		t.Fatalf("batches: got %d runs, errors %v", len(rep.Runs), rep.Runs[0].Errors)
	}
	r := rep.Runs[0]
	assert.True(t, (r.Operations+r.Shed)%5 == 0 && r.Operations+r.Shed >= 5*r.Requests && r.Requests != 0, "%v %v %v", r.Operations, r.Shed, r.Requests)
	text, err := os.ReadFile(page)
	assert.True(t, err == nil && strings.Contains(string(text), "beside"), "the page: %v", err)
	left, err := os.ReadDir(temporary)
	assert.True(t, err == nil && len(left) <= 0, "left behind: %v, %v", left, err)
}

// TestBenchOfAnAddress measures a program that runs, with the token of a context.
func TestBenchOfAnAddress(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts a server")
	}
	p := startProgram(t)
	t.Setenv("TROUPE_CONTEXTS", filepath.Join(t.TempDir(), "contexts.yaml"))
	address := "http://" + p.Addr
	p.shell("./troupe token create --user john.doe > john.token; ./troupe token create --user mary.major > mary.token\n" +
		"TROUPE_CONTEXTS=$PWD/c.yaml ./troupe context set here --address " + address + " --token-file john.token")
	t.Setenv("TROUPE_CONTEXTS", "c.yaml")
	clitest.PutFile(t, ".", "load.yaml", "workflow: leave-request\nusers: {john: [], mary: []}\n"+
		"walk:\n  draft: [{event: submit, data: {days: 5}, to: review}]\n  review: [{event: approve, as: mary, to: approved}]\n")
	small := []string{"bench", "--connections", "2", "--instances", "4", "--warmup", "0s"}
	var code int
	var stdout, stderr string
	for _, window := range []string{"300ms", "3s", "30s"} { // a machine may stand still for a while
		code, stdout, stderr = clitest.Invoke(append(small, "--duration", window, "--context", "here", "--scenario", "load.yaml", "--as", "mary=mary.token", "--fail-if", "errors>0,rate>0")...)
		if code != cli.ExitDone {
			break
		}
	}
	assert.True(t, code == cli.ExitFailed && strings.Contains(stderr, "troupe: --fail-if: rate>0 (rate was ") && !strings.Contains(stderr, "errors>0 ("),
		"got code %d, %s\n%s", code, stderr, stdout)
	// The example's leave request does not take the data of the built-in load.
	code, _, stderr = clitest.Invoke(append(small, "--duration", "300ms", "--context", "here")...)
	if code != cli.ExitFailed || !strings.Contains(stderr, "prepare: create as bench: status 400 InvalidContent: ") || !strings.Contains(stderr, "--as mary=FILE") {
		t.Errorf("another workflow: got code %d, %s", code, stderr)
	}
}

// TestBenchLeavesNothingWhenItsTerminalCloses: it is interrupted by that.
func TestBenchLeavesNothingWhenItsTerminalCloses(t *testing.T) {
	asked := make(chan struct{}, 1)
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // NB: before, nobody notices that the connection has ended
		asked <- struct{}{}
		<-r.Context().Done() // no answer
	}))
	defer s.Close()
	self, err := os.Executable()
	require.NoError(t, err)
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGHUP) // NB: below nohup the program would inherit that it is ignored
	defer signal.Stop(caught)
	temporary := t.TempDir()
	cmd := exec.CommandContext(t.Context(), self, "bench", "--address", s.URL)
	cmd.Env = append(os.Environ(), asProgram+"=1", "TMPDIR="+temporary, "TROUPE_TOKEN=x", "TROUPE_CONTEXTS="+filepath.Join(temporary, "none"))
	var stderr strings.Builder
	cmd.Stderr = &stderr
	require.NoError(t, cmd.Start())
	<-asked
	during, err := os.ReadDir(temporary)
	assert.True(t, err == nil && len(during) == 1, "got %v, %v, want a folder while it runs", during, err)
	require.NoError(t, cmd.Process.Signal(syscall.SIGHUP))
	_ = cmd.Wait() // the code is looked at
	got := stderr.String()
	assert.True(t, cmd.ProcessState.ExitCode() == cli.ExitFailed && strings.HasSuffix(got, "\ntroupe: interrupted: nothing was measured\n"),
		"got %v, %q", cmd.ProcessState, got)
	left, err := os.ReadDir(temporary)
	assert.True(t, err == nil && len(left) <= 0, "left behind: %v, %v", left, err)
}

// jsonNames adds the names of the members of a type, and of those in it.
func jsonNames(of reflect.Type, names []string) []string {
	switch of.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return jsonNames(of.Elem(), names)
	case reflect.Struct:
		for i := range of.NumField() {
			switch name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ","); {
			case of.Field(i).Anonymous:
				names = jsonNames(of.Field(i).Type, names)
			case name != "" && name != "-":
				names = jsonNames(of.Field(i).Type, append(names, name))
			}
		}
	}
	return names
}

// TestHomeHasTheJSONOfAMeasurement holds the table to the program: all members, and no
// others.
func TestHomeHasTheJSONOfAMeasurement(t *testing.T) {
	_, text, found := strings.Cut(section(t, readDocument(t, homeDocument), "Measuring"), "\n### The JSON of a measurement\n")
	require.True(t, found, "there is no such section")
	_, table, _ := strings.Cut(text, "|---|")
	var got []string
	for _, name := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(table, -1) {
		got = append(got, name[1])
	}
	want := jsonNames(reflect.TypeFor[report.Report](), nil)
	slices.Sort(got)
	slices.Sort(want)
	compare(t, "The JSON of a measurement", slices.Compact(got), slices.Compact(want))
}

func TestBenchPrintsItsWorkflow(t *testing.T) {
	code, stdout, stderr := clitest.Invoke("bench", "--print-workflow", "--scenario", "../../bench/scenarios/leave-request.yaml")
	example, err := os.ReadFile("example/workflows/leave-request.yaml")
	assert.True(t, err == nil && code == cli.ExitDone && stdout == string(example) && stderr == "", "of a scenario: got code %d, %v, %s%s", code, err, stdout, stderr)
	code, stdout, stderr = clitest.Invoke("bench", "--print-workflow")
	assert.True(t, code == cli.ExitDone && stdout == load.Definition && stderr == "", "got code %d, %s%s", code, stdout, stderr)
}
