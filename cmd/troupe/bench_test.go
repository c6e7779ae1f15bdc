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

	"troupe/bench/load"
	"troupe/bench/report"
	"troupe/bench/trial"
	"troupe/gateway/servertest"
)

// measured is the report of a measurement, in longer windows for as long as too little was answered: a machine
// may stand still for a while.
func measured(t *testing.T, args ...string) (window time.Duration, rep report.Report) {
	t.Helper()
	for window = 300 * time.Millisecond; ; window *= 5 {
		code, stdout, stderr := invoke(slices.Concat([]string{"bench", "--duration", window.String(), "--warmup", "0s", "-o", "json"}, args)...)
		rep = report.Report{}
		if err := json.Unmarshal([]byte(stdout), &rep); err != nil || len(rep.Runs) == 0 {
			t.Fatalf("%q: got code %d, %v, %s\n%s", args, code, err, stderr, stdout)
		}
		little := slices.ContainsFunc(rep.Runs, func(r *report.Run) bool { return r.Requests < 20 && r.ErrorsTotal == 0 })
		if !little && code != exitDone {
			t.Fatalf("%q: got code %d, %s\n%s", args, code, stderr, stdout)
		}
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
	if err != nil {
		t.Fatal(err)
	}
	temporary, page := t.TempDir(), filepath.Join(t.TempDir(), "bench.html")
	t.Setenv(asProgram, "1")
	t.Setenv("TMPDIR", temporary)
	window, rep := measured(t, "--scenario", "../../bench/scenarios/leave-request.yaml", "--mix", "create=1,event=8,read=1,query=0.5",
		"--rate", "200", "--connections", "4", "--instances", "8", "--against", self, "--rounds", "1",
		"--fail-if", "errors>0,missed>10000,shed>10000,cpu>10s", "--report", page)
	if len(rep.Runs) != 2 {
		t.Fatalf("got %d runs, want 2", len(rep.Runs))
	}
	for _, r := range rep.Runs {
		want := 200 * window.Milliseconds() / 1000
		if due := r.InLatencies() + r.Missed + r.Shed; due != want || r.ErrorsTotal != 0 || r.Requests == 0 || r.Operations != r.Requests {
			t.Errorf("%s: got %d of %d requests, errors %v", r.Target, due, want, r.Errors)
		}
		if r.Kinds["event"].Requests == 0 || len(r.Series) == 0 || len(r.Percentiles) == 0 || r.ServerCPUCores == nil {
			t.Errorf("%s: got %+v", r.Target, r)
		}
	}
	if rep.Load.Workflow != "leave-request" || !rep.Targets[0].Local || rep.Targets[0].Build == "" || len(rep.Ratios) < 3 || len(rep.Thresholds) != 4 {
		t.Errorf("got %+v", rep)
	}
	if _, rep = measured(t, "--batch", "5", "--connections", "2", "--instances", "10"); len(rep.Runs) != 1 || rep.Runs[0].ErrorsTotal > 0 {
		t.Fatalf("batches: got %d runs, errors %v", len(rep.Runs), rep.Runs[0].Errors)
	}
	if r := rep.Runs[0]; (r.Operations+r.Shed)%5 != 0 || r.Operations+r.Shed < 5*r.Requests || r.Requests == 0 {
		t.Errorf("batches: got %d events done and %d refused in %d requests", r.Operations, r.Shed, r.Requests)
	}
	if text, err := os.ReadFile(page); err != nil || !strings.Contains(string(text), "beside") {
		t.Errorf("the page: %v", err)
	}
	if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
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
	putFile(t, ".", "load.yaml", "workflow: leave-request\nusers: {john: [], mary: []}\n"+
		"walk:\n  draft: [{event: submit, data: {days: 5}, to: review}]\n  review: [{event: approve, as: mary, to: approved}]\n")
	small := []string{"bench", "--connections", "2", "--instances", "4", "--warmup", "0s"}
	var code int
	var stdout, stderr string
	for _, window := range []string{"300ms", "3s", "30s"} { // a machine may stand still for a while
		code, stdout, stderr = invoke(append(small, "--duration", window, "--context", "here", "--scenario", "load.yaml", "--as", "mary=mary.token", "--fail-if", "errors>0,rate>0")...)
		if code != exitDone {
			break
		}
	}
	if code != exitFailed || !strings.Contains(stderr, "troupe: --fail-if: rate>0 (rate was ") || strings.Contains(stderr, "errors>0 (") {
		t.Errorf("got code %d, %s\n%s", code, stderr, stdout)
	}
	// The example's leave request does not take the data of the built-in load.
	code, _, stderr = invoke(append(small, "--duration", "300ms", "--context", "here")...)
	if code != exitFailed || !strings.Contains(stderr, "prepare: create as bench: status 400 InvalidContent: ") || !strings.Contains(stderr, "--as mary=FILE") {
		t.Errorf("another workflow: got code %d, %s", code, stderr)
	}
}

func TestBenchRefusesWhatMakesNoSense(t *testing.T) {
	t.Setenv("TROUPE_CONTEXTS", filepath.Join(t.TempDir(), "none"))
	t.Setenv("TROUPE_TOKEN", "token")
	dir := t.TempDir()
	putFile(t, dir, "load.yaml", "workflow: x\nwalk: {a: [{event: b}]}\n")
	putFile(t, dir, "wrong.yaml", "workflow: x\nwalk: {a: [{evnet: b}]}\n")
	here, wrong := filepath.Join(dir, "load.yaml"), filepath.Join(dir, "wrong.yaml")
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--rate", "fast"}, exitUsage, `--rate "fast": must be a number of requests a second above 0`},
		{[]string{"--rate", "100,0"}, exitUsage, `--rate "0"`},
		{[]string{"--mix", "delete=1"}, exitUsage, `--mix "delete=1": "delete" is none of create, event, read, query`},
		{[]string{"--connections", "0"}, exitUsage, "--connections must be above 0"},
		{[]string{"--print-workflow", "--scenario", wrong}, exitUsage, "unknown key"},
		{[]string{"--duration", "99ms"}, exitUsage, "--duration must be at least 100ms"},
		{[]string{"--duration", "soon"}, exitUsage, "must be a time such as"},
		{[]string{"--batch", "20000"}, exitUsage, "--batch must be at most 10,000"},
		{[]string{"--batch", "5", "--mix", "read=1"}, exitUsage, "--batch: --mix read=1 has no events"},
		{[]string{"--rounds", "0"}, exitUsage, "--rounds must be above 0"},
		{[]string{"--fail-if", ""}, exitUsage, `--fail-if "": a condition is like`},
		{[]string{"--fail-if", "p99>20"}, exitUsage, "p99 needs a time with its unit"},
		{[]string{"--address", "http://127.0.0.1:1", "--fail-if", "cpu>1us"}, exitUsage, "known only of a server that troupe bench starts"},
		{[]string{"--address", "127.0.0.1:18300", "--token-file", "gone"}, exitUsage, `"127.0.0.1:18300" must be a URL such as http://127.0.0.1:18300`},
		{[]string{"--rate", "100,,200"}, exitUsage, `--rate "100,,200": must be a number`},
		{[]string{"--rate", ""}, exitUsage, `--rate "": must be a number`},
		{[]string{"--fail-if", "p99>20ms,"}, exitUsage, `--fail-if "p99>20ms,": a condition is like`},
		{[]string{"--token-file", "x"}, exitUsage, "are for a service that runs"},
		{[]string{"--against-token-file", "x"}, exitUsage, "--against-token-file and --against-as are for --against with a URL"},
		{[]string{"--against", "http://127.0.0.1:1"}, exitFailed, "there is no token for http://127.0.0.1:1: give one with --against-token-file FILE"},
		{[]string{"--workflow", "x"}, exitUsage, "are for a service that runs"},
		{[]string{"--scenario", "gone.yaml"}, exitUsage, "--scenario: open gone.yaml"},
		{[]string{"--scenario", wrong}, exitUsage, `wrong.yaml:2:13: unknown key "evnet" (did you mean "event"?)`},
		{[]string{"--scenario", here}, exitFailed, "the scenario names no definition"},
		{[]string{"--scenario", here, "--batch", "5"}, exitUsage, "--batch needs a scenario"},
		{[]string{"--scenario", here, "--instances", "5"}, exitUsage, "--instances 5 is less than --connections 64"},
		{[]string{"--against", "gone"}, exitUsage, `--against "gone": must be a program`},
		{[]string{"--report", "/gone/x.html"}, exitUsage, "its folder is not there"},
		{[]string{"--report", dir}, exitUsage, "is a folder"},
		{[]string{"--raet", "5"}, exitUsage, "Run 'troupe bench --help'."},
		{[]string{"--print-workflow", "--scenario", here}, exitFailed, "load.yaml names no definition"},
		{[]string{"--as", "bob=x", "--address", "http://127.0.0.1:1"}, exitUsage, "--as \"bob=x\": must be USER=FILE with a user of the scenario"},
		{[]string{"-o", "xml"}, exitUsage, "must be one of table"},
		{[]string{"--address", "http://" + servertest.Nobody(t)}, exitFailed, "connection refused"},
	} {
		code, stdout, stderr := invoke(append([]string{"bench"}, c.args...)...)
		if code != c.code || !strings.Contains(stderr, c.want) || stdout != "" {
			t.Errorf("%v: got code %d, %s%s\nwant %d, %s", c.args, code, stderr, stdout, c.code, c.want)
		}
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
	if err != nil {
		t.Fatal(err)
	}
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGHUP) // NB: below nohup the program would inherit that it is ignored
	defer signal.Stop(caught)
	temporary := t.TempDir()
	cmd := exec.CommandContext(t.Context(), self, "bench", "--address", s.URL)
	cmd.Env = append(os.Environ(), asProgram+"=1", "TMPDIR="+temporary, "TROUPE_TOKEN=x", "TROUPE_CONTEXTS="+filepath.Join(temporary, "none"))
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-asked
	if during, err := os.ReadDir(temporary); err != nil || len(during) != 1 {
		t.Errorf("got %v, %v, want a folder while it runs", during, err)
	}
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // the code is looked at
	if got := stderr.String(); cmd.ProcessState.ExitCode() != exitFailed || !strings.HasSuffix(got, "\ntroupe: interrupted, nothing was measured yet\n") {
		t.Errorf("got %v, %q", cmd.ProcessState, got)
	}
	if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestEachServiceGetsItsOwnTokens: none of one service goes to the other.
func TestEachServiceGetsItsOwnTokens(t *testing.T) {
	t.Setenv("TROUPE_CONTEXTS", filepath.Join(t.TempDir(), "none"))
	t.Setenv("TROUPE_TOKEN", "mine")
	dir := t.TempDir()
	putFile(t, dir, "john", "john")
	putFile(t, dir, "mary", "mary")
	b := benchCommand{as: []string{"bench=" + filepath.Join(dir, "john")}, against: "http://127.0.0.1:2", againstToken: filepath.Join(dir, "mary")}
	b.at.address = "http://127.0.0.1:1"
	plan := trial.Plan{Load: load.Options{Scenario: load.BuiltIn()}}
	if err := b.targets(&plan); err != nil {
		t.Fatal(err)
	}
	mine, other := plan.Targets[0], plan.Targets[1]
	if mine.Token != "mine" || mine.Tokens["bench"] != "john" || other.Token != "mary" || len(other.Tokens) != 0 {
		t.Errorf("got %+v and %+v", mine, other)
	}
	b.at.tokenFile = filepath.Join(dir, "gone")
	if err := b.targets(&plan); err == nil || strings.Contains(err.Error(), "--context") {
		t.Errorf("without the file of the token: got %v", err)
	}
	b.at.tokenFile = ""
	t.Setenv("TROUPE_TOKEN", "")
	if err := b.targets(&plan); err == nil || !strings.Contains(err.Error(), "--context local") {
		t.Errorf("without a token: got %v", err)
	}
}

// jsonNames adds the names of the members of a type, and of those in it.
func jsonNames(of reflect.Type, names []string) []string {
	switch of.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return jsonNames(of.Elem(), names)
	case reflect.Struct:
		for i := range of.NumField() {
			if name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ","); name != "" {
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
	if !found {
		t.Fatal("there is no such section")
	}
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
	code, stdout, stderr := invoke("bench", "--print-workflow", "--scenario", "../../bench/scenarios/leave-request.yaml")
	if example, err := os.ReadFile("example/workflows/leave-request.yaml"); err != nil || code != exitDone || stdout != string(example) || stderr != "" {
		t.Errorf("of a scenario: got code %d, %v, %s%s", code, err, stdout, stderr)
	}
	if code, stdout, stderr := invoke("bench", "--print-workflow"); code != exitDone || stdout != load.Definition || stderr != "" {
		t.Errorf("got code %d, %s%s", code, stdout, stderr)
	}
}

func TestTheLiveLine(t *testing.T) {
	var now load.Interval
	now.Began, now.Ended, now.Operations = time.Second, 1500*time.Millisecond, 500
	now.Latency.P50, now.Latency.P99 = load.Duration(1500*time.Microsecond), load.Duration(20*time.Millisecond)
	for _, c := range []struct {
		p    trial.Progress
		want string
	}{
		{trial.Progress{Target: "troupe", Doing: "starting"}, "troupe: starting"},
		{
			trial.Progress{Target: "troupe", RatePerSecond: 1000, Round: 2, Rounds: 3, Failed: 7, Now: now, Total: 10 * time.Second},
			"troupe 1000/s 2/3: 1000/s  p50 1.5 ms  p99 20.0 ms  errors 7  1.5s of 10s",
		},
	} {
		if got := liveText(&c.p); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
	var b strings.Builder
	l := newLiveLine(&b) // nobody's terminal
	for _, p := range []trial.Progress{
		{Target: "troupe", Doing: "starting"},
		{Target: "troupe", Now: now, Total: 10 * time.Second},
		{Target: "troupe", Failed: 1, Now: now, Total: 10 * time.Second},
		{Target: "other", Now: now, Total: 10 * time.Second},
	} {
		l.show(p)
	}
	l.say("not on a pipe")
	l.clear()
	if got, want := b.String(), "troupe: starting\ntroupe: measuring for 10s\nother: measuring for 10s\n"; got != want {
		t.Errorf("got %q on a pipe, want %q", got, want)
	}
}

func TestTheCommandLineIsShownAsItCanBeTyped(t *testing.T) {
	got := commandLine([]string{"bench", "--fail-if", "p99>20ms,errors>0", "--rate=1,2", "it's", ""})
	if want := `troupe bench --fail-if 'p99>20ms,errors>0' --rate=1,2 'it'\''s' ''`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
