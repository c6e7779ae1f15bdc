package doctor

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/clitest"
)

func TestMain(m *testing.M) {
	clitest.Program = func() *cobra.Command { return cli.NewRoot("", "", Command()) }
	m.Run()
}

// TestDoctor examines the example: what is wrong is found, and the home stays as it was.
func TestDoctor(t *testing.T) {
	dir := clitest.ExampleHome(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	clitest.PutFile(t, dir, "troupe.yaml", "listen: "+taken.Addr().String()+"\nadmin: 127.0.0.1:0\nawakeBytesMax: 921600GiB\nfreeBytesMin: 921600GiB\nconnectionsMax: 100000000\n")
	before := list(t, dir)
	code, stdout, stderr := clitest.Invoke("doctor", "--home", dir, "-o", "json")
	require.Equal(t, cli.ExitFailed, code, stderr)
	assert.Equal(t, before, list(t, dir), "the home has other files")
	var found struct{ Findings []Finding }
	require.NoError(t, json.Unmarshal([]byte(stdout), &found))
	results := map[string]Result{}
	for _, f := range found.Findings {
		results[f.Check] = f.Result
		assert.Equal(t, f.Result != OK, f.Advice != "", "%+v: there is advice where something is wrong, and nowhere else", f)
	}
	for check, want := range map[string]Result{"settings": OK, "files": OK, "store": OK, "disk": Failure, "listen": Failure, "admin": OK, "cluster.listen": OK, "memory": Failure, "open files": Warning} {
		assert.Equal(t, want, results[check], check)
	}
	assert.Contains(t, []Result{OK, Warning}, results["sync"])

	clitest.PutFile(t, dir, "troupe.yaml", "lisen: :8080\n")
	code, stdout, _ = clitest.Invoke("doctor", "--home", dir)
	assert.Equal(t, cli.ExitFailed, code)
	assert.Contains(t, stdout, "listen") // what was meant
	clitest.PutFile(t, dir, "troupe.yaml", "listen: 127.0.0.1:0\n")
	clitest.PutFile(t, dir, "workflows/broken.yaml", "id: [\n")
	_, stdout, _ = clitest.Invoke("doctor", "--home", dir)
	assert.Contains(t, stdout, "troupe check --home "+dir)
	clitest.PutFile(t, dir, "data/FORMAT", "not what it was\n")
	_, stdout, _ = clitest.Invoke("doctor", "--home", dir)
	assert.Regexp(t, `store +failure +.*FORMAT`, stdout)
	code, _, stderr = clitest.Invoke("doctor", "--home", t.TempDir())
	assert.True(t, code == cli.ExitFailed && stderr != "", "no home: %d %s", code, stderr)
}

func list(t *testing.T, dir string) (names []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		names = append(names, path)
		return err
	}))
	return names
}
