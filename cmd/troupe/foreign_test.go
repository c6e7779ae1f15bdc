package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
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
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestImport(t *testing.T) {
	dir := t.TempDir()
	good, into := writeFile(t, dir, "small.scxml", small), filepath.Join(dir, "made")
	script := writeFile(t, dir, "script.scxml", `<scxml xmlns="http://www.w3.org/2005/07/scxml" version="1.0"><script>x = 1</script><state id="a"/></scxml>`)
	home := filepath.Join(dir, "home")
	if _, err := ensureHome(home); err != nil {
		t.Fatal(err)
	}
	made := filepath.Join(into, "light.yaml")
	runAll(t, []invocation{
		{name: "into a folder", args: []string{"import", good, "--into", into}, stdout: made + "\n", stderr: "note: small.scxml:2: the attribute x of another namespace is left out"},
		{name: "again", args: []string{"import", good, "--into", into}, code: exitFailed, stderr: "light.yaml is there: --force replaces it; nothing was written"},
		{name: "again with force", args: []string{"import", good, "--into", into, "--force"}, stdout: made + "\n", stderr: "note"},
		{name: "into a home", args: []string{"import", good, "--home", home}, stdout: filepath.Join(home, "workflows", "light.yaml") + "\n", stderr: "note"},
		{name: "a home that is none", args: []string{"import", good, "--home", into}, code: exitFailed, stderr: "or say --into"},
		{name: "what cannot be expressed", args: []string{"import", script, "--into", into}, code: exitFailed, stderr: "script.scxml:1: <script> cannot be expressed"},
		{name: "an unknown extension", args: []string{"import", "a.bpmn", "--into", into}, code: exitUsage, stderr: ".scxml"},
		{name: "no file", args: []string{"import", filepath.Join(dir, "none.scxml"), "--into", into}, code: exitFailed, stderr: "no such file"},
	})
	text, err := os.ReadFile(made)
	if err != nil || string(text) != lightYAML {
		t.Errorf("got\n%s, %v\nwant\n%s", text, err, lightYAML)
	}
	if code, _, stderr := invoke("check", "--home", home); code != exitDone {
		t.Errorf("the home has faults then: %s", stderr)
	}
}

func TestExport(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	if _, err := ensureHome(home); err != nil {
		t.Fatal(err)
	}
	code, out, stderr := invoke("export", "leave-request", "--to", "scxml", "--home", home)
	if code != exitDone || !strings.Contains(out, `<scxml xmlns="http://www.w3.org/2005/07/scxml"`) || !strings.Contains(stderr, `"allow" is no part of SCXML`) {
		t.Fatalf("got code %d\n%s\n%s", code, out, stderr)
	}
	again := writeFile(t, t.TempDir(), "again.scxml", out)
	if code, out, stderr = invoke("import", again, "--home", home, "--force"); code != exitDone || !strings.HasSuffix(out, "leave-request.yaml\n") {
		t.Errorf("import of what was exported: code %d, %s, %s", code, out, stderr)
	}
	if code, _, stderr = invoke("check", "--home", home); code != exitDone {
		t.Errorf("the home has faults then: %s", stderr)
	}
	startNotice(t)
	if code, out, _ = invoke("export", "notice", "--to", "scxml"); code != exitDone || !strings.Contains(out, `name="notice"`) {
		t.Errorf("of a service: code %d, %s", code, out)
	}
	runAll(t, []invocation{
		{name: "no format", args: []string{"export", "notice"}, code: exitUsage, stderr: "--to is missing"},
		{name: "an unknown format", args: []string{"export", "notice", "--to", "bpmn"}, code: exitUsage, stderr: "it is scxml"},
		{name: "an unknown workflow", args: []string{"export", "none", "--to", "scxml"}, code: exitFailed, stderr: "404"},
		{name: "an unknown workflow of a home", args: []string{"export", "none", "--to", "scxml", "--home", home}, code: exitFailed, stderr: "there is no workflow none in "},
	})
}

func TestXState(t *testing.T) {
	dir := t.TempDir()
	home := filepath.Join(dir, "home")
	if _, err := ensureHome(home); err != nil {
		t.Fatal(err)
	}
	good := writeFile(t, dir, "light.json", `{"id": "light", "types": {}, "initial": "red", "states": {"red": {"on": {"go": "green"}}, "green": {"type": "final"}}}`)
	bad := writeFile(t, dir, "bad.json", `{"initial": "red", "states": {"red": {"on": {"go": {"guard": "canGo"}}}}}`)
	runAll(t, []invocation{
		{name: "into a home", args: []string{"import", good, "--home", home}, stdout: filepath.Join(home, "workflows", "light.yaml") + "\n", stderr: `note: light.json:1:17: "types" does nothing`},
		{name: "a guard without a condition", args: []string{"import", bad, "--home", home}, code: exitFailed, stderr: `bad.json:1:62: the guard "canGo" has no condition`},
	})
	code, out, stderr := invoke("export", "leave-request", "--to", "xstate", "--home", home)
	if code != exitDone || !strings.Contains(out, `"initial": "draft"`) || !strings.Contains(stderr, `XState has no "allow"`) {
		t.Fatalf("export: code %d\n%s\n%s", code, out, stderr)
	}
	again := writeFile(t, dir, "leave.json", out)
	if code, out, stderr = invoke("import", again, "--home", home, "--force"); code != exitDone || !strings.HasSuffix(out, "leave-request.yaml\n") {
		t.Errorf("import of what was exported: code %d, %s, %s", code, out, stderr)
	}
	if code, _, stderr = invoke("check", "--home", home); code != exitDone {
		t.Errorf("the home has faults then: %s", stderr)
	}
}
