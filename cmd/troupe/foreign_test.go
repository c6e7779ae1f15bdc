package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/clitest"
	"troupe/cmd/internal/homedir"
)

const small = `<scxml xmlns="http://www.w3.org/2005/07/scxml" version="1.0" name="light" xmlns:qt="urn:editor">
  <state id="red" qt:x="1"><transition event="go" target="green"/></state>
  <final id="green"/>
</scxml>
`

const lightYAML = `id: light
semantics: scxml
stateMachines: {main: {states: {red: {on: {go: green}}, green: {type: final}}}}
`

// writeFile writes a file into a folder and returns its path.
func writeFile(t *testing.T, folder, name, text string) string {
	t.Helper()
	path := filepath.Join(folder, name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestImport(t *testing.T) {
	dir := t.TempDir()
	good, into := writeFile(t, dir, "small.scxml", small), filepath.Join(dir, "made")
	script := writeFile(t, dir, "script.scxml", `<scxml xmlns="http://www.w3.org/2005/07/scxml" version="1.0"><script>x = 1</script><state id="a"/></scxml>`)
	home := filepath.Join(dir, "home")
	if _, err := homedir.Ensure(home, clitest.Example()); err != nil {
		t.Fatal(err)
	}
	made := filepath.Join(into, "light.yaml")
	clitest.RunAll(t, []clitest.Invocation{
		{Name: "into a folder", Args: []string{"import", good, "--into", into}, Stdout: made + "\n", Stderr: "note: small.scxml:2: the attribute x of another namespace is left out"},
		{Name: "again", Args: []string{"import", good, "--into", into}, Code: cli.ExitFailed, Stderr: "light.yaml exists; nothing was written; use --force to replace it"},
		{Name: "again with force", Args: []string{"import", good, "--into", into, "--force"}, Stdout: made + "\n", Stderr: "note"},
		{Name: "into a home", Args: []string{"import", good, "--home", home}, Stdout: filepath.Join(home, "workflows", "light.yaml") + "\n", Stderr: "note"},
		{Name: "a home that is none", Args: []string{"import", good, "--home", into}, Code: cli.ExitFailed, Stderr: "or use --into"},
		{Name: "what cannot be expressed", Args: []string{"import", script, "--into", into}, Code: cli.ExitFailed, Stderr: "script.scxml:1: <script> cannot be expressed"},
		{Name: "an unknown extension", Args: []string{"import", "a.bpmn", "--into", into}, Code: cli.ExitUsage, Stderr: ".scxml"},
		{Name: "no file", Args: []string{"import", filepath.Join(dir, "none.scxml"), "--into", into}, Code: cli.ExitFailed, Stderr: "no such file"},
	})
	text, err := os.ReadFile(made)
	assert.True(t, err == nil && string(text) == lightYAML, "got\n%s, %v\nwant\n%s", text, err, lightYAML)
	code, _, stderr := clitest.Invoke("check", "--home", home)
	assert.Zero(t, code, "the home has faults then: %s", stderr)
}

func TestExport(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	_, err := homedir.Ensure(home, clitest.Example())
	require.NoError(t, err)
	code, out, stderr := clitest.Invoke("export", "leave-request", "--to", "scxml", "--home", home)
	if code != cli.ExitDone || !strings.Contains(out, `<scxml xmlns="http://www.w3.org/2005/07/scxml"`) || !strings.Contains(stderr, `"allow" is not part of SCXML`) {
		t.Fatalf("got code %d\n%s\n%s", code, out, stderr)
	}
	again := writeFile(t, t.TempDir(), "again.scxml", out)
	code, out, stderr = clitest.Invoke("import", again, "--home", home, "--force")
	assert.True(t, code == cli.ExitDone && strings.HasSuffix(out, "leave-request.yaml\n"), "import of what was exported: code %d, %s, %s", code, out, stderr)
	code, _, stderr = clitest.Invoke("check", "--home", home)
	assert.Zero(t, code, "the home has faults then: %s", stderr)
	clitest.StartNotice(t)
	code, out, _ = clitest.Invoke("export", "notice", "--to", "scxml")
	assert.True(t, code == cli.ExitDone && strings.Contains(out, `name="notice"`), "of a service: code %d, %s", code, out)
	clitest.RunAll(t, []clitest.Invocation{
		{Name: "no format", Args: []string{"export", "notice"}, Code: cli.ExitUsage, Stderr: "--to is required"},
		{Name: "an unknown format", Args: []string{"export", "notice", "--to", "bpmn"}, Code: cli.ExitUsage, Stderr: "it is scxml"},
		{Name: "an unknown workflow", Args: []string{"export", "none", "--to", "scxml"}, Code: cli.ExitFailed, Stderr: "404"},
		{Name: "an unknown workflow of a home", Args: []string{"export", "none", "--to", "scxml", "--home", home}, Code: cli.ExitFailed, Stderr: "there is no workflow none in "},
	})
}

func TestXState(t *testing.T) {
	dir := t.TempDir()
	home := filepath.Join(dir, "home")
	_, err := homedir.Ensure(home, clitest.Example())
	require.NoError(t, err)
	good := writeFile(t, dir, "light.json", `{"id": "light", "types": {}, "initial": "red", "states": {"red": {"on": {"go": "green"}}, "green": {"type": "final"}}}`)
	bad := writeFile(t, dir, "bad.json", `{"initial": "red", "states": {"red": {"on": {"go": {"guard": "canGo"}}}}}`)
	clitest.RunAll(t, []clitest.Invocation{
		{Name: "into a home", Args: []string{"import", good, "--home", home}, Stdout: filepath.Join(home, "workflows", "light.yaml") + "\n", Stderr: `note: light.json:1:17: "types" does nothing`},
		{Name: "a guard without a condition", Args: []string{"import", bad, "--home", home}, Code: cli.ExitFailed, Stderr: `bad.json:1:62: the guard "canGo" has no condition`},
	})
	code, out, stderr := clitest.Invoke("export", "leave-request", "--to", "xstate", "--home", home)
	require.True(t, code == cli.ExitDone && strings.Contains(out, `"initial": "draft"`) && strings.Contains(stderr, `XState has no "allow"`),
		"export: code %d\n%s\n%s", code, out, stderr)
	again := writeFile(t, dir, "leave.json", out)
	code, out, stderr = clitest.Invoke("import", again, "--home", home, "--force")
	assert.True(t, code == cli.ExitDone && strings.HasSuffix(out, "leave-request.yaml\n"), "import of what was exported: code %d, %s, %s", code, out, stderr)
	code, _, stderr = clitest.Invoke("check", "--home", home)
	assert.Zero(t, code, "the home has faults then: %s", stderr)
}
