package bench

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/bench/load"
	"troupe/bench/trial"
	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/clitest"
)

// TestEachServiceGetsItsOwnTokens: none of one service goes to the other.
func TestEachServiceGetsItsOwnTokens(t *testing.T) {
	t.Setenv("TROUPE_CONTEXTS", filepath.Join(t.TempDir(), "none"))
	t.Setenv("TROUPE_TOKEN", "mine")
	dir := t.TempDir()
	clitest.PutFile(t, dir, "john", "john")
	clitest.PutFile(t, dir, "mary", "mary")
	b := benchCommand{as: []string{"bench=" + filepath.Join(dir, "john")}, against: "http://127.0.0.1:2", againstToken: filepath.Join(dir, "mary")}
	b.at.Address = "http://127.0.0.1:1"
	plan := trial.Plan{Load: load.Options{Scenario: load.BuiltIn()}}
	require.NoError(t, b.targets(&plan))
	mine, other := plan.Targets[0], plan.Targets[1]
	assert.True(t, mine.Token == "mine" && mine.Tokens["bench"] == "john" && other.Token == "mary" && len(other.Tokens) == 0, "got %+v and %+v", mine, other)
	b.at.TokenFile = filepath.Join(dir, "gone")
	err := b.targets(&plan)
	assert.True(t, err != nil && !strings.Contains(err.Error(), "--context"), "without the file of the token: got %v", err)
	b.at.TokenFile = ""
	t.Setenv("TROUPE_TOKEN", "")
	err = b.targets(&plan)
	assert.True(t, err != nil && strings.Contains(err.Error(), "--context local"), "without a token: got %v", err)
}

func TestTheLiveLine(t *testing.T) {
	now := load.Interval{BeganSeconds: 1, EndedSeconds: 1.5, OperationsPerSecond: 1000, Latency: load.Latency{P50Ms: 1.5, P99Ms: 20}}
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
		assert.Equal(t, c.want, liveText(&c.p))
	}
	var b strings.Builder
	l := &progressLine{live: cli.NewLiveLine(&b), parts: &b} // nobody's terminal
	for _, p := range []trial.Progress{
		{Target: "troupe", Doing: "starting"},
		{Target: "troupe", Now: now, Total: 10 * time.Second},
		{Target: "troupe", Failed: 1, Now: now, Total: 10 * time.Second},
		{Target: "other", Now: now, Total: 10 * time.Second},
	} {
		l.show(p)
	}
	l.live.Say("not on a pipe")
	l.live.Clear()
	assert.Equal(t, "troupe: starting\ntroupe: measuring for 10s\nother: measuring for 10s\n", b.String())
}

func TestTheCommandLineIsShownAsItCanBeTyped(t *testing.T) {
	got := commandLine([]string{"bench", "--fail-if", "p99>20ms,errors>0", "--rate=1,2", "it's", ""})
	assert.Equal(t, `troupe bench --fail-if 'p99>20ms,errors>0' --rate=1,2 'it'\''s' ''`, got)
}

// TestSeveralNodes: the addresses of one service stand with commas between them, and fit together.
func TestSeveralNodes(t *testing.T) {
	t.Setenv("TROUPE_CONTEXTS", filepath.Join(t.TempDir(), "none"))
	t.Setenv("TROUPE_TOKEN", "mine")
	for text, want := range map[string][]string{
		"http://a:1":                           {"http://a:1"},
		"http://a:1,http://b:2, http://c":      {"http://a:1", "http://b:2", "http://c"},
		"http://a/x,y,http://b/x,y":            {"http://a/x,y", "http://b/x,y"},
		"http://a/platform,http://b/platform/": {"http://a/platform", "http://b/platform/"},
		"http://a,https://b":                   nil,
		"http://a/one,http://b/two":            nil,
		"http://a,http://b?x":                  nil,
		",http://b":                            nil,
	} {
		b := benchCommand{}
		b.at.Address = text
		plan := trial.Plan{Load: load.Options{Scenario: load.BuiltIn()}}
		err := b.targets(&plan)
		if want == nil {
			assert.Error(t, err, text)
			continue
		}
		require.NoError(t, err, text)
		assert.Equal(t, want, append([]string{plan.Targets[0].Address}, plan.Targets[0].Others...), text)
	}
}
