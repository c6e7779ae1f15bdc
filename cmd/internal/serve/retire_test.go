package serve

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/clitest"
)

// TestRetireWithoutAServer: the store of a home is opened when no server runs on it.
func TestRetireWithoutAServer(t *testing.T) {
	dir := clitest.SmallHome(t)
	o := mustOpenService(t, dir)
	for _, text := range []string{door, strings.Replace(door, "version: 2", "version: 3", 1)} {
		require.NoError(t, o.publish("", text, false))
	}
	o.close()
	for _, c := range []struct{ args, out, err string }{
		{"door@4", "", "there is no such workflow or version"},
		{"door@x", "", "a version is a number from 1"},
		{"door@3 door@x", "", "a version is a number from 1"}, // and nothing was tried
		{"purchase-order", "", "comes from a file of the home"},
		{"door@3", "door@3\n", ""},
		{"door", "door@2\n", ""},
		{"door", "", "there is no such workflow or version"},
		{"", "", "is missing"},
	} {
		code, out, err := clitest.Invoke(append([]string{"definition", "retire", "--home", dir}, strings.Fields(c.args)...)...)
		assert.True(t, (code == cli.ExitDone) == (c.err == "") && strings.Contains(err, c.err) && out == c.out, "%v %v %v %v %v %v", c.args, code, out, err, c.out, c.err)
	}
}
