package serve

import (
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/cluster/peer"
	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/clitest"
	"troupe/cmd/internal/homedir"
)

// TestJoinRefuses: each with one line, and nothing is changed.
func TestJoinRefuses(t *testing.T) {
	first, other := clitest.ExampleHome(t), clitest.ExampleHome(t)
	for _, home := range []string{first, other} {
		says(t, "is the first", "cluster", "init", "--home", home, "--cluster-listen", clitest.NodeAddress(), "--shards", "1")
	}
	nodeOn(t, first)
	invite := func() string {
		t.Helper()
		code, key, stderr := clitest.Invoke("cluster", "invite", "--home", first)
		require.Zero(t, code, "invite, %s", stderr)
		return strings.TrimSpace(key)
	}
	used, unreachable := invite(), invite()
	says(t, "belongs to the cluster", "cluster", "join", used, "--home", filepath.Join(t.TempDir(), "b"), "--cluster-listen", clitest.NodeAddress())
	parsed, err := peer.ParseJoinKey(unreachable)
	require.NoError(t, err)
	parsed.Address = clitest.NodeAddress()
	unreachable = parsed.String()
	parsed, err = peer.ParseJoinKey(invite())
	require.NoError(t, err)
	parsed.Authority[0]++
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, c := range []struct{ what, key, home, listen, want string }{
		{"a key that was used", used, "", clitest.NodeAddress(), "was used already"},
		{"no key", "troupe_join_1_x", "", clitest.NodeAddress(), "join key"},
		{"a key of another cluster", parsed.String(), "", clitest.NodeAddress(), "not issued by the authority"},
		{"a cluster that is not there", unreachable, "", clitest.NodeAddress(), "connection refused"},
		{"a home with files", invite(), other, clitest.NodeAddress(), "is not empty"},
		{"an address of another machine", invite(), "", "192.0.2.1:9400", "this machine does not have it; choose another address with --cluster.listen"},
		{"a home that cannot be made", invite(), filepath.Join(file, "b", "c"), clitest.NodeAddress(), "not a directory"},
	} {
		home := cmp.Or(c.home, filepath.Join(t.TempDir(), "new"))
		before := tree(t, home)
		code, stdout, stderr := clitest.Invoke("cluster", "join", c.key, "--home", home, "--cluster-listen", c.listen)
		assert.True(t, code == cli.ExitFailed && stdout == "" && strings.Contains(stderr, c.want) && strings.Count(stderr, "\n") == 1,
			"%s: got %d %q %q, want one line with %q", c.what, code, stdout, stderr, c.want)
		after := tree(t, home)
		assert.True(t, slices.Equal(after, before), "%s: the home has changed from %q to %q", c.what, before, after)
	}
	kept, nobody := invite(), clitest.NodeAddress()
	fresh := filepath.Join(t.TempDir(), "deep", "new")
	refuses(t, "cannot be reached at "+nobody, "cluster", "join", kept, "--home", fresh, "--cluster-listen", clitest.NodeAddress(), "--cluster-advertise", nobody)
	files := tree(t, filepath.Dir(fresh))
	assert.Empty(t, files, "a refused join has left %q", files)
	assert.Len(t, clusterOf(t, first).Nodes, 2, "the cluster")
	says(t, "belongs to the cluster", "cluster", "join", kept, "--home", fresh, "--cluster-listen", clitest.NodeAddress())
	before := tree(t, fresh)
	refuses(t, "is already a node of a cluster", "cluster", "init", "--home", fresh, "--cluster-listen", clitest.NodeAddress())
	after := tree(t, fresh)
	assert.True(t, slices.Equal(after, before), "a home that has joined was changed from %q to %q", before, after)
}

// TestAnAddressThatNobodyReaches: the first who hears of it is who says it, and not the next node.
func TestAnAddressThatNobodyReaches(t *testing.T) {
	for _, address := range []string{"0.0.0.0:9400", "[::]:9400", ":9400", "10.0.0.1:0"} {
		for _, command := range [][]string{{"init"}, {"join", "troupe_join_1_x"}} {
			home := filepath.Join(t.TempDir(), "new")
			args := slices.Concat([]string{"cluster"}, command, []string{"--home", home, "--cluster-listen", clitest.NodeAddress(), "--cluster-advertise", address})
			code, stdout, stderr := clitest.Invoke(args...)
			assert.True(t, code == cli.ExitUsage && stdout == "" && strings.Contains(stderr, "other nodes cannot reach") && !homedir.Exists(home),
				"%q: got %d %q %q", args, code, stdout, stderr)
		}
	}
}

func tree(t *testing.T, dir string) (names []string) {
	t.Helper()
	_ = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err == nil {
			names = append(names, path)
		}
		return nil
	})
	return names
}
