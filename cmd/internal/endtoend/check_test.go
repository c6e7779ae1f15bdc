package endtoend

import (
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// TestOtherProcessCheck plants faults in a home. `troupe check` must name all of
// them with file and line, and a server must not start on them.
func TestOtherProcessCheck(t *testing.T) {
	h := newHome(t, flows())
	out := command(t, "check", "--home", h.dir)
	if out.code != 0 || out.stdout != "" {
		t.Fatalf("a home without faults: got exit code %d and %s%s, want 0 and nothing", out.code, out.stdout, out.stderr)
	}
	planted := []struct{ file, text, at, says string }{
		{"identity.yaml", people + "  - {id: zoe, roles: [clrk]}\n", "identity.yaml:9:", `"clrk"`},
		{"workflows/target.yaml", "id: target\nstateMachines:\n  main:\n    initial: a\n    states:\n      a: {on: {go: bb}}\n", "workflows/target.yaml:6:", `"bb"`},
		{"workflows/key.yaml", "id: key\nnmae: x\nstateMachines: {main: {initial: a, states: {a: {type: final}}}}\n", "workflows/key.yaml:2:", `"name"`},
		{"workflows/cel.yaml", "id: cel\nstateMachines:\n  main:\n    initial: a\n    states:\n      a:\n        on: {go: {guard: 'svcPublic.', target: b}}\n      b: {type: final}\n", "workflows/cel.yaml:7:", "expression"},
		{"workflows/dead.json", "{\"id\": \"dead\",\n\"stateMachines\": {\"main\": {\"initial\": \"a\", \"states\": {\"a\": {\"type\": \"final\"},\n\"b\": {\"type\": \"final\"}}}}}\n", "workflows/dead.json:3:", "unreachable"},
		{"workflows/broken.yaml", "id: broken\n  x: [\n", "workflows/broken.yaml:", ""},
		{"workflows/twice.yaml", "id: twice\nid: again\n", "workflows/twice.yaml:2:", ""},
		{"forms/key.yaml", "id: key\nacces: {}\nenabled: false\nschema: {type: object}\n", "forms/key.yaml:2:", `"access"`},
		{"forms/id.json", "{\"enabled\": false, \"schema\": {\"type\": \"object\"},\n\"id\": \"api\"}\n", "forms/id.json:2:", "taken"},
		{"checklists/none.yaml", "id: none\nenabled: false\nitems: []\n", "checklists/none.yaml:3:", "no items"},
		{"rights.yaml", "- path: /a\n  readers: []\n- path: /a\n  readers: []\n", "rights.yaml:3:", "line 1"},
		{"troupe.yaml", "listen: 127.0.0.1:0\nlisen: x\n", "troupe.yaml:2:", `"listen"`},
	}
	for _, p := range planted {
		h.write(p.file, p.text)
	}
	out = command(t, "check", "--home", h.dir)
	if out.code != 1 {
		t.Errorf("exit code: got %d, want 1", out.code)
	}
	for _, p := range planted {
		if !hasLine(out.stdout, p.at, p.says) {
			t.Errorf("no line of the faults begins with %s and says %s:\n%s", p.at, p.says, out.stdout)
		}
	}
	for line := range strings.Lines(out.stdout) {
		if !regexp.MustCompile(`^(identity\.yaml|rights\.yaml|troupe\.yaml|(workflows|forms|checklists)/\w+\.(yaml|json)):\d+`).MatchString(line) {
			t.Errorf("a line of the faults without a place: %s", line)
		}
	}
	// Which roles there are is known only when identity.yaml is right.
	h.write("identity.yaml", people)
	h.write("workflows/role.yaml", "id: role\nallow:\n  create: {roles: [aprover]}\nstateMachines: {main: {initial: a, states: {a: {type: final}}}}\n")
	out = command(t, "check", "--home", h.dir)
	if out.code != 1 || !hasLine(out.stdout, "workflows/role.yaml:3:", `"approver"`) {
		t.Errorf("an unknown role: got exit code %d and %s", out.code, out.stdout)
	}
	h.remove("troupe.yaml")
	out = command(t, "serve", "--home", h.dir, "--listen", "127.0.0.1:0")
	if out.code != 1 || !strings.Contains(out.stderr, "workflows/target.yaml:6") {
		t.Errorf("a start on faults: got exit code %d and %s, want 1 and the faults", out.code, out.stderr)
	}
}

// TestOtherProcessCheckSeesTheSet plants a fault that no file has alone.
func TestOtherProcessCheckSeesTheSet(t *testing.T) {
	h := newHome(t, map[string]string{"workflows/plain.yaml": plainFlow, "workflows/twin.yaml": plainFlow + "# the same again\n"})
	out := command(t, "serve", "--home", h.dir, "--listen", "127.0.0.1:0")
	if out.code != 1 || !strings.Contains(out.stderr, "workflows/twin.yaml:1") {
		t.Errorf("a start: got exit code %d and %s, want 1 and the fault", out.code, out.stderr)
	}
	out = command(t, "check", "--home", h.dir)
	if out.code != 1 || !hasLine(out.stdout, "workflows/twin.yaml:1", "plain") {
		t.Errorf("check: got exit code %d and %s%s, want 1 and the fault", out.code, out.stdout, out.stderr)
	}
}

// TestOtherProcessCheckSeesSettings: what serve would refuse, check refuses.
func TestOtherProcessCheckSeesSettings(t *testing.T) {
	for text, says := range map[string]string{"listen: 8080\n": "the setting listen", "basePath: platform\n": `"platform"`} {
		h := newHome(t, map[string]string{"troupe.yaml": text})
		for _, args := range [][]string{{"check", "--home", h.dir}, {"serve", "--home", h.dir}} {
			if out := command(t, args...); out.code != 1 || !strings.Contains(out.stderr, says) {
				t.Errorf("%s with %q: got exit code %d and %s", args[0], text, out.code, out.stderr)
			}
		}
	}
}

func hasLine(text, begin, says string) bool {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, begin) && strings.Contains(line, says) {
			return true
		}
	}
	return false
}

// TestOtherProcessConfig holds cmd/troupe/HOME.md, "Settings": every key is shown
// with its value, its source and one line of help, and a flag counts before the
// environment, that before the file, and that before the default.
func TestOtherProcessConfig(t *testing.T) {
	h := newHome(t, map[string]string{"troupe.yaml": "basePath: /file\nlogLevel: warn\ndrainMax: 3s\noidc:\n  issuer: https://login.example.com\n  clientSecret: oak\n"})
	cmd := exec.Command(binary(), "config", "--home", h.dir, "--drain-max", "5s")
	cmd.Env = append(cmd.Environ(), "TROUPE_LOG_LEVEL=error", "TROUPE_DRAIN_MAX=4s", "TROUPE_TRUSTED_PROXIES=10.1.2.3/8")
	text, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct{ key, value, source, env string }{
		{"home", h.dir, "flag", "TROUPE_HOME"},
		{"basePath", "/file", "troupe.yaml", "TROUPE_BASE_PATH"},
		{"logLevel", "error", "TROUPE_LOG_LEVEL", "TROUPE_LOG_LEVEL"},
		{"drainMax", "5s", "flag", "TROUPE_DRAIN_MAX"},
		{"trustedProxies", "10.0.0.0/8", "TROUPE_TRUSTED_PROXIES", "TROUPE_TRUSTED_PROXIES"},
		{"oidc.issuer", "https://login.example.com", "troupe.yaml", "TROUPE_OIDC_ISSUER"},
		{"oidc.clientSecret", "(not shown)", "troupe.yaml", "TROUPE_OIDC_CLIENT_SECRET"},
		{"listen", "127.0.0.1:8080", "default", "TROUPE_LISTEN"},
		{"sessionCookie", "session", "default", "TROUPE_SESSION_COOKIE"},
		{"sessionIdle", "12h", "default", "TROUPE_SESSION_IDLE"},
		{"sessionMax", "7d", "default", "TROUPE_SESSION_MAX"},
	} {
		row := fmt.Sprintf(`(?m)^%s +%s +%s +%s +\S+ \S+`, regexp.QuoteMeta(want.key), regexp.QuoteMeta(want.value),
			regexp.QuoteMeta(want.source), regexp.QuoteMeta(want.env))
		if !regexp.MustCompile(row).Match(text) {
			t.Errorf("no row with %s, %s, %s and %s:\n%s", want.key, want.value, want.source, want.env, text)
		}
	}
	rows := 0
	for line := range strings.Lines(string(text)) {
		if rows++; rows > 1 && !regexp.MustCompile(`^[a-z][A-Za-z]+(\.[a-z][A-Za-z]+)? +.*(default|flag|troupe\.yaml|TROUPE_\w+) +TROUPE_[A-Z_]+ +\S.*\n$`).MatchString(line) {
			t.Errorf("a key without value, source, variable or help: %q", line)
		}
	}
	if rows < 9 {
		t.Errorf("got %d rows: %s", rows, text)
	}
}

// TestOtherProcessUsage holds cmd/troupe/HOME.md, "Exit codes and output": 2 for
// wrong usage, and --help with an example for every command.
func TestOtherProcessUsage(t *testing.T) {
	for _, args := range []string{
		"", "unknown", "serve --unknown", "serve extra", "token", "token create", "token unknown", "token revoke", "token create --user ann --expires never",
		"token create --user ann --expires -1h", "session create", "password", "password set", "password set secret", "check extra", "config --unknown",
	} {
		out := command(t, strings.Fields(args)...)
		if out.code != 2 || out.stderr == "" {
			t.Errorf("troupe %s: got exit code %d and %q, want 2 and what is wrong", args, out.code, out.stderr)
		}
	}
	for _, args := range []string{
		"serve", "token create", "token list", "token revoke", "session create", "session list", "session revoke", "password set", "check", "config",
	} {
		text := wantCommand(t, append(strings.Fields(args), "--help")...)
		if !strings.Contains(text, "troupe "+args) || !strings.Contains(text, "Example") {
			t.Errorf("troupe %s --help has no example: %s", args, text)
		}
	}
}
