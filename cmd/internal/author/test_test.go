package author

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/simulation/script"
	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/clitest"
	"troupe/gateway/servertest"
)

func TestMain(m *testing.M) {
	clitest.Program = func() *cobra.Command { return cli.NewRoot("", "", Commands()...) }
	m.Run()
}

// TestTheExampleIsTested runs the tests of the example home: they pass, and reach all of its workflows.
func TestTheExampleIsTested(t *testing.T) {
	dir, page := clitest.ExampleHome(t), filepath.Join(t.TempDir(), "coverage.html")
	out := clitest.MustInvoke(t, "test", dir, "-o", "json", "--coverage", page)
	var report struct {
		Tests          []testJSON
		Passed, Failed int
		Coverage       []*script.Coverage
	}
	require.NoError(t, json.Unmarshal([]byte(out), &report))
	assert.True(t, report.Passed == len(report.Tests) && report.Passed > 10 && report.Failed == 0, out)
	require.Len(t, report.Coverage, 3)
	for _, c := range report.Coverage {
		assert.Empty(t, c.Missed, c.Workflow)
		assert.InDelta(t, 100, c.Percent(), 0, c.Workflow)
	}
	html, err := os.ReadFile(page)
	require.NoError(t, err)
	assert.Equal(t, 3, strings.Count(string(html), "<svg "))
	assert.Equal(t, 3, strings.Count(string(html), "The tests reach everything."))

	picture := filepath.Join(t.TempDir(), "coverage.svg")
	table := clitest.MustInvoke(t, "test", dir, "--coverage", picture, "--run", "a short leave*")
	assert.Contains(t, table, "leave-request  3/8     1/8")
	assert.NotContains(t, table, "stock-take", "what is not asked for is not counted")
	assert.Contains(t, table, "workflows/leave-request.yaml:102: transition main.waiting reject → rejected\n")
	svg, err := os.ReadFile(picture)
	require.NoError(t, err)
	assert.NoError(t, xml.Unmarshal(svg, new(struct{})))
	clitest.MustInvoke(t, "test", dir, "--coverage", picture)
	svg, err = os.ReadFile(picture)
	require.NoError(t, err)
	assert.NoError(t, xml.Unmarshal(svg, new(struct{})))
	assert.Equal(t, 4, strings.Count(string(svg), "<svg "), "the charts stand below each other")
}

// TestTheGuideIsRight runs the tests in the guide beside the example.
func TestTheGuideIsRight(t *testing.T) {
	guide, err := os.ReadFile(filepath.Join(clitest.Tree(), "cmd", "troupe", "TESTS.md"))
	require.NoError(t, err)
	dir := clitest.ExampleHome(t)
	_, text, found := strings.Cut(string(guide), "```yaml\n")
	text, _, _ = strings.Cut(text, "```")
	require.True(t, found)
	clitest.PutFile(t, dir, "tests/guide.yaml", text)
	assert.Contains(t, clitest.MustInvoke(t, "test", dir), "tests/guide.yaml")
}

// TestTheCoverageInTheGuideIsRight compares it with what the command prints of the example without its test of a rejected order.
func TestTheCoverageInTheGuideIsRight(t *testing.T) {
	guide, err := os.ReadFile(filepath.Join(clitest.Tree(), "cmd", "troupe", "TESTS.md"))
	require.NoError(t, err)
	dir := clitest.ExampleHome(t)
	file := filepath.Join(dir, "tests", "purchase-order.yaml")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	without := regexp.MustCompile(`(?m)^  a rejected order[^\n]*\n(    [^\n]*\n|\n)*`).ReplaceAll(text, nil)
	require.Less(t, len(without), len(text), "there is a test of a rejected order")
	clitest.PutFile(t, dir, "tests/purchase-order.yaml", string(without))
	out := clitest.MustInvoke(t, "test", dir, "--coverage", filepath.Join(t.TempDir(), "coverage.svg"))
	_, table, found := strings.Cut(out, "\n\n")
	require.True(t, found, out)
	assert.Contains(t, string(guide), "```\n"+table+"```\n")
}

func TestAFailureIsShown(t *testing.T) {
	dir := clitest.ExampleHome(t)
	clitest.Edit(t, dir, "tests/stock-take.yaml", "svcPublic: {counted: 120, missing: 3}", "svcPublic: {counted: 120, missing: 4}")
	code, out, complaint := clitest.Invoke("test", "--home", dir, "--run", "*count*")
	assert.Equal(t, cli.ExitFailed, code)
	assert.Equal(t, "troupe: 1 of 3 tests failed\n", complaint)
	assert.Equal(t, `RESULT  TEST                             FILE
FAILED  purchasing counts what is there  tests/stock-take.yaml:5
passed  it can be counted late           tests/stock-take.yaml:12
passed  a count is a whole number        tests/stock-take.yaml:20

purchasing counts what is there
  tests/stock-take.yaml:10: svcPublic.missing
    expected  4
    found     3
  history:
    2026-01-05 09:00:00 paulo.santos created it: open
    2026-01-05 09:00:00 paulo.santos count {"counted":120,"missing":3}: open → counted
`, out)

	code, out, _ = clitest.Invoke("test", dir, "-o", "junit")
	assert.Equal(t, cli.ExitFailed, code)
	var suites junitSuites
	require.NoError(t, xml.Unmarshal([]byte(out), &suites))
	assert.Equal(t, 1, suites.Failures)
	assert.Contains(t, out, `<failure message="svcPublic.missing: expected 4, found 3">`)
	assert.Contains(t, out, `<testcase name="it can be counted late" classname="stock-take" file="tests/stock-take.yaml" line="12" time="`)
}

// TestFaultyFilesAreNoFailures: their exit code is another, and troupe check finds them, too.
func TestFaultyFilesAreNoFailures(t *testing.T) {
	dir := clitest.ExampleHome(t)
	clitest.Edit(t, dir, "tests/stock-take.yaml", "as: paulo.santos, send: count", "as: paulo.santo, send: count")
	for command, code := range map[string]int{"test": cli.ExitUsage, "check": cli.ExitFailed} {
		got, out, complaint := clitest.Invoke(command, "--home", dir)
		assert.Equal(t, code, got, command)
		assert.Contains(t, out+complaint, `tests/stock-take.yaml:9:14: there is no user "paulo.santo" (did you mean "paulo.santos"?)`, command)
	}
	for _, args := range [][]string{
		{"test", dir, "--run", "nothing like this"},
		{"test", t.TempDir()},
		{"test", dir, "--coverage", "x.png"},
		{"test", dir, "-o", "xml"},
		{"test", dir, "--to", "x.yaml"},
		{"simulate"},
	} {
		code, _, complaint := clitest.Invoke(args...)
		assert.Equal(t, cli.ExitUsage, code, "%v: %s", args, complaint)
	}
	clitest.RemoveFile(t, dir, "workflows/stock-take.yaml")
	_, _, complaint := clitest.Invoke("test", dir)
	assert.Contains(t, complaint, `there is no workflow "stock-take"`)
	for _, name := range []string{"stock-take", "leave-request", "purchase-order"} {
		clitest.RemoveFile(t, dir, "tests/"+name+".yaml")
	}
	code, _, complaint := clitest.Invoke("test", dir)
	assert.True(t, code == cli.ExitDone && complaint == "No tests found.\n", "%d %s", code, complaint)
}

// TestRecording makes tests of instances of a service, which pass.
func TestRecording(t *testing.T) {
	s, dir := clitest.StartService(t), t.TempDir()
	for from, to := range map[string]string{"identity.yaml": "identity.yaml", "leave.yaml": "workflows/leave.yaml"} {
		text, err := os.ReadFile(filepath.Join(clitest.Tree(), "gateway", "servertest", from))
		require.NoError(t, err)
		clitest.PutFile(t, dir, to, string(text))
	}
	id := s.Create(`{"days": 3}`, "submit", "note", "idle", "wave", "approve")
	text := clitest.MustInvoke(t, "test", dir, "--record", id)
	assert.Contains(t, text, "send: approve")
	assert.Equal(t, text, clitest.MustInvoke(t, "test", dir, "--record", servertest.Workflow+"/"+id))
	file := filepath.Join(dir, "tests", "recorded.yaml")
	assert.Empty(t, clitest.MustInvoke(t, "test", dir, "--record", id, "--to", file))
	written, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, text, string(written))
	assert.Contains(t, clitest.MustInvoke(t, "test", dir), "passed  as "+id)

	clitest.Edit(t, dir, "workflows/leave.yaml", "approve: approved", "approve: draft")
	code, _, complaint := clitest.Invoke("test", dir, "--record", id, "--to", file)
	assert.Equal(t, cli.ExitFailed, code)
	again, err := os.ReadFile(file)
	assert.True(t, err == nil && string(again) == text, "the file stays as it is")
	assert.Contains(t, complaint, `the instance went by "approve" to approved, but the simulated one by "approve" to draft`)
	code, _, complaint = clitest.Invoke("test", dir, "--record", "01M7X76MQ3B39RFC7WWVK0NTP7")
	assert.True(t, code == cli.ExitFailed && strings.Contains(complaint, "404 NotFound"), complaint)
}

// TestExploring prints a file that fails when it is run.
func TestExploring(t *testing.T) {
	dir := clitest.ExampleHome(t)
	code, out, complaint := clitest.Invoke("test", dir, "--explore", "--walks", "50")
	assert.True(t, code == cli.ExitDone && out == "", "the example: %d %s", code, out)
	assert.Equal(t, 3, strings.Count(complaint, "0 findings"), complaint)

	clitest.Edit(t, dir, "workflows/stock-take.yaml", "        after: {P7D: overdue}", "        after: {P7D: {target: overdue, actions: [{assign: {svcPublic.late: '${svcPublic.none.none}'}}]}}")
	code, found, complaint := clitest.Invoke("test", dir, "--explore", "--run", "stock*")
	assert.Equal(t, cli.ExitFailed, code)
	assert.Contains(t, complaint, "stock-take: 200 walks, ")
	assert.True(t, strings.HasSuffix(complaint, ", 1 finding\ntroupe: 1 finding\n"), complaint)
	clitest.PutFile(t, dir, "tests/found.yaml", found)
	code, out, _ = clitest.Invoke("test", dir, "--run", "*fails*")
	assert.True(t, code == cli.ExitFailed && strings.Contains(out, "tests/found.yaml"), "%d %s", code, out)

	code, out, _ = clitest.Invoke("test", dir, "--explore", "--run", "stock-take", "-o", "json")
	assert.Equal(t, cli.ExitFailed, code)
	var report struct{ Workflows []*script.Explored }
	require.NoError(t, json.Unmarshal([]byte(out), &report))
	assert.Equal(t, found, "# Found in the workflow stock-take.\n"+report.Workflows[0].Findings[0].Test)

	clitest.PutFile(t, dir, "workflows/stuck.yaml", "id: stuck\nstateMachines: {m: {initial: a, states: {a: {after: {P1D: {target: b, actions: [{assign: {svcPublic.late: '${svcPublic.none.none}'}}]}}}, b: {type: final}}}}\n")
	_, out, complaint = clitest.Invoke("test", dir, "--explore", "--run", "st*")
	files := strings.Split(out, "---\n")
	require.Len(t, files, 2, out+complaint)
	assert.Equal(t, found, files[0])
	assert.True(t, strings.HasPrefix(files[1], "# Found in the workflow stuck.\nworkflow: stuck\n"), out)
	clitest.PutFile(t, dir, "tests/stuck.yaml", files[1])
	code, out, _ = clitest.Invoke("test", dir)
	assert.True(t, code == cli.ExitFailed && strings.Contains(out, "tests/found.yaml") && strings.Contains(out, "tests/stuck.yaml"), "%d %s", code, out)
	clitest.PutFile(t, dir, "workflows/more.yaml", "id: more\nstateMachines: {m: {initial: a, states: {a: {invoke: [{workflow: more}, {workflow: more}], on: {end: b}}, b: {type: final}}}}\n")
	code, _, complaint = clitest.Invoke("test", dir, "--explore", "--run", "more", "--walks", "5")
	assert.True(t, code == cli.ExitFailed && strings.Contains(complaint, "more was not explored to the end: walk 1 has come to more than 2000 events"), "%d %s", code, complaint)
	for _, args := range [][]string{{"--run", "nothing"}, {"--steps", "1001"}, {"-o", "junit"}} {
		code, _, complaint := clitest.Invoke(append([]string{"test", dir, "--explore"}, args...)...)
		assert.Equal(t, cli.ExitUsage, code, "%v: %s", args, complaint)
	}
}

// verdicts passes on each end of a run.
type verdicts chan string

func (v verdicts) Write(text []byte) (int, error) {
	if bytes.Contains(text, []byte("Waiting for changes.")) {
		v <- string(text)
	}
	return len(text), nil
}

// TestWatching runs the tests again when a file of tests changes.
func TestWatching(t *testing.T) {
	dir := clitest.ExampleHome(t)
	ctx, stop := context.WithCancel(t.Context())
	runs, ended := make(verdicts), make(chan error, 1)
	cmd := newTest()
	cmd.SetArgs([]string{dir, "--watch"})
	cmd.SetOut(new(bytes.Buffer))
	cmd.SetErr(runs)
	go func() { ended <- cmd.ExecuteContext(ctx) }()
	assert.Equal(t, "All tests passed. Waiting for changes.\n", <-runs)
	clitest.Edit(t, dir, "tests/stock-take.yaml", "counted: 120, missing: 3}, timers", "counted: 121, missing: 3}, timers")
	assert.Equal(t, "1 of 18 tests failed. Waiting for changes.\n", <-runs)
	stop()
	for {
		select {
		case <-runs: // it had begun
		case err := <-ended:
			assert.NoError(t, err)
			return
		}
	}
}
