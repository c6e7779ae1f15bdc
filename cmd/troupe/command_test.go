package main

import (
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/clitest"
	"troupe/cmd/internal/homedir"
)

// TestEveryCommandHelps holds cmd/troupe/HOME.md, "Commands": every command has --help
// with an example.
func TestEveryCommandHelps(t *testing.T) {
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		for _, below := range c.Commands() {
			visit(below)
			if below.Example == "" || below.Short == "" {
				t.Errorf("%s has no example or no description", below.CommandPath())
			}
			args := append(strings.Fields(below.CommandPath())[1:], "--help")
			code, stdout, stderr := clitest.Invoke(args...)
			assert.True(t, code == cli.ExitDone && strings.Contains(stdout, below.Example) && stderr == "", "%v %v %v %v", args, code, stderr, stdout)
		}
	}
	visit(newRoot())
}

func TestExitCodes(t *testing.T) {
	home := clitest.ExampleHome(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = taken.Close() }()
	clitest.RunAll(t, []clitest.Invocation{
		{Name: "no command", Args: nil, Code: cli.ExitUsage, Stderr: "troupe: "},
		{Name: "an unknown command", Args: []string{"server"}, Code: cli.ExitUsage, Stderr: `troupe: unknown command "server" for "troupe"`},
		{Name: "a group without a command", Args: []string{"token"}, Code: cli.ExitUsage, Stderr: "troupe: "},
		{Name: "an unknown command of a group", Args: []string{"token", "make"}, Code: cli.ExitUsage, Stderr: "troupe: "},
		{Name: "an unknown flag", Args: []string{"check", "--hom", home}, Code: cli.ExitUsage, Stderr: "troupe: "},
		{Name: "a flag without its value", Args: []string{"check", "--home"}, Code: cli.ExitUsage, Stderr: "troupe: "},
		{Name: "an argument too many", Args: []string{"check", "here"}, Code: cli.ExitUsage, Stderr: "troupe: unexpected argument \"here\": troupe check\n"},
		{Name: "an argument too few", Args: []string{"token", "revoke", "--home", home}, Code: cli.ExitUsage, Stderr: "troupe: ID is missing: troupe token revoke ID\n"},
		{Name: "no file", Args: []string{"parameters"}, Code: cli.ExitUsage, Stderr: "troupe: FILE is missing: troupe parameters FILE...\n"},
		{Name: "no user", Args: []string{"token", "create", "--home", home}, Code: cli.ExitUsage, Stderr: "troupe: "},
		{Name: "a wrong time", Args: []string{"token", "create", "--home", home, "--user", "john.doe", "--expires", "soon"}, Code: cli.ExitUsage, Stderr: "troupe: "},
		{Name: "no time at all", Args: []string{"token", "create", "--home", home, "--user", "john.doe", "--expires", "0s"}, Code: cli.ExitUsage, Stderr: "troupe: "},
		{Name: "an unknown user", Args: []string{"token", "create", "--home", home, "--user", "nobody"}, Code: cli.ExitFailed, Stderr: "troupe: "},
		{Name: "a note of two lines", Args: []string{"token", "create", "--home", home, "--user", "john.doe", "--note", "a\nb"}, Code: cli.ExitFailed, Stderr: "troupe: "},
		{Name: "an unknown token", Args: []string{"token", "revoke", "--home", home, "tok_aaaaaaaaaaaaaaaa"}, Code: cli.ExitFailed, Stderr: "troupe: "},
		{Name: "a port that is taken", Args: []string{"serve", "--home", home, "--listen", taken.Addr().String()}, Code: cli.ExitFailed, Stderr: "address already in use; choose another address with --listen, or with listen: in troupe.yaml\n"},
		{Name: "another port that is taken", Args: []string{"serve", "--home", home, "--listen", "127.0.0.1:0", "--admin", taken.Addr().String()}, Code: cli.ExitFailed, Stderr: "address already in use; choose another address with --admin, or with admin: in troupe.yaml\n"},
		{Name: "a home that is not there", Args: []string{"check", "--home", filepath.Join(home, "no")}, Code: cli.ExitFailed, Stderr: "troupe: "},
	})
}

// noFaultsAlone is what check says of good files while no server runs.
const noFaultsAlone = "OK. No server is running, so version conflicts were not checked.\n"

// TestCheck edits the example home and looks for lines in what is said of it. There are
// no others when it has no faults.
func TestCheck(t *testing.T) {
	const leave, form = "workflows/leave-request.yaml", "forms/leave-form.yaml"
	context := [][3]string{
		{leave, "const: {daysWithoutAsking: 2}", "context: {svcPrivate: {daysWithoutAsking: 2}}"},
		{leave, "context:\n  svcPublic: {status: draft, days: 0}\n", ""},
		{leave, "const.days", "svcPrivate.days"},
	}
	tests := []struct {
		name  string
		edits [][3]string // file, before, after
		code  int
		want  []string
	}{
		{"the example", nil, cli.ExitDone, nil},
		{"all faults together", [][3]string{
			{"troupe.yaml", "# listen", "lissen"},
			{"identity.yaml", "mod-form]", "mod-from]"},
			{leave, "target: approved", "target: aproved"},
			{form, "[leave-request]", "leave-request\nbound: yes"}, // a workflow with faults is not called unknown
			{"forms/feedback.yaml", "maxLength: 2000", "maxLength: many"},
			{"checklists/workplace-safety.yaml", "label: {en: All", "lable: {en: All"},
			{"rights.yaml", "readers: ", "raeders: "},
		}, cli.ExitFailed, []string{
			`checklists/workplace-safety\.yaml:\d+:\d+: .*label.*`, `forms/feedback\.yaml:\d+:\d+: JSON Schema.*`,
			`forms/leave-form\.yaml:\d+:\d+: unknown key "bound".*`, `identity\.yaml:\d+:\d+: .*mod-form.*`, `rights\.yaml:\d+:\d+: .*readers.*`,
			`troupe\.yaml:\d+:\d+: .*`, `workflows/leave-request\.yaml:\d+:\d+: .*approved.*`,
		}},
		{"a default that nobody can replace", context, cli.ExitDone, nil},
		{"what whoever creates an instance could decide", append(context, [3]string{leave, "  svcPrivate: false\n", ""}), cli.ExitDone, []string{
			`warning: workflows/leave-request\.yaml:\d+:\d+: the condition reads svcPrivate\.daysWithoutAsking, but users who create .*`,
		}},
		{"a form that nobody could submit", [][3]string{
			{form, "    reason:\n", "    colour: {type: string}\n    reason:\n"},
			{leave, "      required: [days]\n", "      required: [days, until]\n"},
		}, cli.ExitFailed, []string{
			`forms/leave-form\.yaml:\d+:3: the event "submit" of workflow "leave-request" requires "until", which the form does not have.*`,
			`forms/leave-form\.yaml:\d+:5: the event "submit" of workflow "leave-request" refuses the field "colour".*`,
		}},
		{"a form that its event may refuse", [][3]string{{form, "  required: [days]\n", ""}}, cli.ExitDone, []string{
			`warning: forms/leave-form\.yaml:\d+:\d+: the event "submit" of workflow "leave-request" requires "days", which may be left out of the form .*`,
		}},
		{"two workflows of one id", [][3]string{{"workflows/stock-take.yaml", "id: stock-take", "id: leave-request"}}, cli.ExitFailed, []string{
			`workflows/stock-take\.yaml:\d+:\d+: .*leave-request.*`,
		}},
		{"a task whose form is not there", [][3]string{{"workflows/purchase-order.yaml", "form: order-decision", "form: order-desicion"}}, cli.ExitFailed, []string{
			`workflows/purchase-order\.yaml:\d+:\d+: no form has the id "order-desicion" \(did you mean "order-decision"\?\)`,
		}},
		{"a task whose event refuses what its form sends", [][3]string{{"forms/order-decision.yaml", "    comment:\n", "    coment:\n"}, {"forms/order-decision.yaml", "  comment: {", "  coment: {"}}, cli.ExitFailed, []string{
			`workflows/purchase-order\.yaml:\d+:\d+: form "order-decision": the event "approve" refuses the field "coment" \(did you mean "comment"\?\)`,
		}},
		{"a task that does not take what its form sends", [][3]string{{"forms/order-decision.yaml", "submit: approve", "submit: aprove"}}, cli.ExitFailed, []string{
			`workflows/purchase-order\.yaml:\d+:\d+: the form "order-decision" sends the event "aprove", which the task does not take \(did you mean "approve"\?\)`,
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			home := clitest.ExampleHome(t)
			for _, e := range test.edits {
				clitest.Edit(t, home, e[0], e[1], e[2])
			}
			code, stdout, stderr := clitest.Invoke("check", "--home", home)
			ok := code == test.code && !strings.Contains(stdout, "unknown workflow")
			if code == cli.ExitDone {
				ok = ok && strings.Count(stdout, "\n") == len(test.want) && stderr == noFaultsAlone
			}
			for _, want := range test.want {
				ok = ok && regexp.MustCompile("(?m)^"+want+"$").MatchString(stdout)
			}
			assert.True(t, ok, "got code %d, %q and\n%s\nwant %d and\n%s", code, stderr, stdout, test.code, strings.Join(test.want, "\n"))
		})
	}
}

// TestCredentialsWithoutServer makes, lists and revokes while no server runs.
func TestCredentialsWithoutServer(t *testing.T) {
	home := clitest.ExampleHome(t)
	secretForm := regexp.MustCompile(`^((?:tok|ses)_[a-z2-7]{16})\.([A-Za-z0-9_-]{43})\n$`)
	for _, kind := range []string{"token", "session"} {
		code, stdout, stderr := clitest.Invoke(kind, "create", "--home", home, "--user", "john.doe", "--note", "first steps")
		parts := secretForm.FindStringSubmatch(stdout)
		require.True(t, code == cli.ExitDone && parts != nil && stderr == "", "%v %v %v %v", kind, code, stdout, stderr)
		id, secret := parts[1], parts[2]
		list := func() string {
			code, stdout, stderr := clitest.Invoke(kind, "list", "--home", home)
			require.True(t, code == cli.ExitDone && stderr == "" && !strings.Contains(stdout, secret), "%v %v %v %v", kind, code, stderr, stdout)
			return stdout
		}
		before := list()
		assert.True(t, strings.Contains(before, id) && strings.Contains(before, "john.doe") && strings.Contains(before, "first steps"), "%v %v %v", kind, before, id)
		code, stdout, stderr = clitest.Invoke(kind, "revoke", "--home", home, id)
		assert.True(t, code == cli.ExitDone && stdout == "", "%s revoke: got code %d, %q, %q", kind, code, stdout, stderr)
		assert.NotEqual(t, before, list(), "%s list after the revocation: got the same as before", kind)
	}
	info, err := os.Stat(filepath.Join(home, homedir.DataFolder))
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the store's folder: got %v, %v, want mode 0700", info.Mode(), err)
	}
}

// TestAFolderThatIsNoHomeIsRefused before anything is made in it.
func TestAFolderThatIsNoHomeIsRefused(t *testing.T) {
	other, missing := t.TempDir(), filepath.Join(t.TempDir(), "missing")
	clitest.PutFile(t, other, "notes.txt", "")
	clitest.WantRefusal(t, []string{"serve", "--home", other, "--listen", "127.0.0.1:0"},
		"troupe: "+other+" has files but no identity.yaml, so it is not a home: give --home a home, or an empty or missing folder\n")
	for _, dir := range []string{other, missing} {
		for _, command := range [][]string{
			{"check"}, {"token", "list"}, {"token", "create", "--user", "john.doe"}, {"session", "list"}, {"store", "create"},
		} {
			want := "; give --home, or run troupe serve to make one\n"
			if dir == other {
				want = ": it has files but no identity.yaml; give another --home\n"
			}
			clitest.WantRefusal(t, append(command, "--home", dir), "troupe: there is no home in "+dir+want)
		}
	}
	left, err := os.ReadDir(other)
	assert.True(t, err == nil && len(left) == 1, "the folder afterwards: got %v, %v, want notes.txt alone", left, err)
	_, err = os.Stat(missing)
	assert.Error(t, err, "a folder was made")
}

// TestASessionCannotOutlastSessionMax: a longer one is refused rather than cut.
func TestASessionCannotOutlastSessionMax(t *testing.T) {
	home := clitest.ExampleHome(t)
	create := []string{"session", "create", "--home", home, "--user", "john.doe", "--expires"}
	clitest.WantRefusal(t, append(create, "30d"), "a session ends after 168 hours in any case: ask for no longer, or change the setting sessionMax")
	clitest.MustInvoke(t, append(create, "12h")...)
	_, help, _ := clitest.Invoke("session", "create", "--help")
	assert.True(t, !strings.Contains(help, "30d") && strings.Contains(help, "--expires 12h"), "got a help whose example is refused:\n%s", help)
}

// TestSettingsThatCannotWork holds that settings of a provider and of a bucket are
// looked at before anybody needs them.
func TestSettingsThatCannotWork(t *testing.T) {
	for settings, want := range map[string]string{
		"oidc: {clientId: x}": "oidc.clientId is set, but oidc.issuer is not",
		"oidc: {issuer: 'http://login.example.com', clientId: x}":                  "the issuer",
		"oidc: {issuer: 'https://login.example.com'}":                              "the client id is missing",
		"oidc: {issuer: 'https://login.example.com', clientId: x, roles: {a: b}}":  "no roles claim",
		"oidc: {issuer: 'https://login.example.com', clientId: x, redirectUrl: x}": "the redirect address",
		"repository: {prefix: x}":                                                  "repository.prefix is set, but repository.bucket is not",
		"repository: {bucket: a/b}":                                                "the settings of the repository: open bucket: Bucket name",
		"repository: {bucket: files, endpoint: s3.example.com}":                    "the endpoint must be like",
		"repository: {bucket: files, accessKey: x}":                                "come together",
		"shards: 5000":                   "shards is 5000, must be 1 to 4096",
		"memTableBytes: 1":               "memtable is 1 bytes",
		"listen: 127.0.0.1":              "troupe.yaml:1:9: listen: must be host:port, such as 127.0.0.1:8080",
		"admin: 8080":                    "troupe.yaml:1:8: admin: must be host:port",
		"queriesMax: -1":                 "troupe.yaml:1:13: queriesMax: must be a whole number of at least 0",
		"quota: {eventsPerSecond: -1}":   "troupe.yaml:1:26: quota.eventsPerSecond: must be a number of at least 0",
		"quota: {eventsPerSecond: lots}": "troupe.yaml:1:26: quota.eventsPerSecond: must be a number of at least 0",
		"basePath: platform":             `troupe.yaml:1:11: basePath: must look like "/platform"`,
		"sessionCookie: a b":             "troupe.yaml:1:16: sessionCookie: must be a valid cookie name",
	} {
		home := clitest.ExampleHome(t)
		clitest.PutFile(t, home, homedir.SettingsFile, settings+"\n")
		code, _, stderr := clitest.Invoke("serve", "--home", home)
		assert.True(t, code == cli.ExitFailed && strings.Contains(stderr, want), "troupe serve, %s: got %d, %s, want %q", settings, code, stderr, want)
		// Other faults are not hidden.
		clitest.PutFile(t, home, "rights.yaml", "raeders: x\n")
		code, stdout, _ := clitest.Invoke("check", "--home", home)
		assert.True(t, code == cli.ExitFailed && strings.Contains(stdout, want) && strings.Contains(stdout, "rights.yaml:1:1: "),
			"troupe check, %s: got %d, %s, want %q and the fault of rights.yaml", settings, code, stdout, want)
	}
}
