package operate

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors"
	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/clitest"
	"troupe/cmd/internal/homedir"
	"troupe/gateway/admin"
)

// TestActors: the tree as an operator sees it, and as a program does.
func TestActors(t *testing.T) {
	home, shard := t.TempDir(), uint16(3)
	tree := actors.Branch{Kind: "service", Name: "service", State: actors.Running, Count: 1, Children: []actors.Branch{
		{Kind: "shard", Name: "shard-3", Shard: &shard, State: actors.Running, Count: 1, Mailbox: 2, Children: []actors.Branch{
			{Kind: "instances", Name: "instances", Shard: &shard, State: "1 resting", Count: 10_000, Mailbox: 7, Restarts: 11},
			{Kind: "background", Name: "timers", Shard: &shard, State: actors.Running, Count: 1},
		}},
	}}
	if code, _, stderr := clitest.Invoke("actors", "--home", home); code != cli.ExitFailed || !strings.Contains(stderr, "no server is running on "+home) {
		t.Errorf("without a server: got %d %q", code, stderr)
	}
	s, err := admin.Start(admin.Options{Path: filepath.Join(home, homedir.AdminSocket), Actors: func() any { return tree }, Log: zerolog.Nop()})
	require.NoError(t, err)
	defer func() {
		assert.NoError(t, s.Stop(t.Context()))
	}()
	want := "ACTOR          KIND        SHARD  STATE      COUNT  MAILBOX  RESTARTS\n" +
		"service        service            running    1      0        0\n" +
		"  shard-3      shard       3      running    1      2        0\n" +
		"    instances  instances   3      1 resting  10000  7        11\n" +
		"    timers     background  3      running    1      0        0\n"
	if code, stdout, stderr := clitest.Invoke("actors", "--home", home); code != cli.ExitDone || stdout != want || stderr != "" {
		t.Errorf("got %d %q\n%s", code, stderr, stdout)
	}
	var got actors.Branch
	code, stdout, stderr := clitest.Invoke("actors", "--home", home, "-o", "json")
	assert.True(t, code == cli.ExitDone && stderr == "" && json.Unmarshal([]byte(stdout), &got) == nil && got.Children[0].Children[0].Restarts == 11,
		"as JSON: got %d %q %q", code, stdout, stderr)
	code, stdout, _ = clitest.Invoke("actors", "--home", home, "-o", "yaml")
	assert.True(t, code == cli.ExitDone && strings.Contains(stdout, "state: \"1 resting\"\n"), "as YAML: got %d %q", code, stdout)
}
