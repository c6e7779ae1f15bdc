package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// invoke runs one command line in this process.
func invoke(args ...string) (code int, stdout, stderr string) {
	var out, err bytes.Buffer
	code = run(args, &out, &err)
	return code, out.String(), err.String()
}

func exampleHome(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "home")
	if filled, err := ensureHome(dir); !filled || err != nil {
		t.Fatalf("ensureHome: got %v, %v, want a filled home", filled, err)
	}
	return dir
}

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
			code, stdout, stderr := invoke(args...)
			if code != exitDone || !strings.Contains(stdout, below.Example) || stderr != "" {
				t.Errorf("%v: got code %d, %q on stderr and this help:\n%s", args, code, stderr, stdout)
			}
		}
	}
	visit(newRoot())
}

func TestExitCodes(t *testing.T) {
	home := exampleHome(t)
	tests := []struct {
		name string
		args []string
		want int
	}{
		{"no command", nil, exitUsage},
		{"an unknown command", []string{"server"}, exitUsage},
		{"a group without a command", []string{"token"}, exitUsage},
		{"an unknown command of a group", []string{"token", "make"}, exitUsage},
		{"an unknown flag", []string{"check", "--hom", home}, exitUsage},
		{"a flag without its value", []string{"check", "--home"}, exitUsage},
		{"an argument too many", []string{"check", "here"}, exitUsage},
		{"an argument too few", []string{"token", "revoke", "--home", home}, exitUsage},
		{"no user", []string{"token", "create", "--home", home}, exitUsage},
		{"a wrong time", []string{"token", "create", "--home", home, "--user", "john.doe", "--expires", "soon"}, exitUsage},
		{"no time at all", []string{"token", "create", "--home", home, "--user", "john.doe", "--expires", "0s"}, exitUsage},
		{"an unknown user", []string{"token", "create", "--home", home, "--user", "nobody"}, exitFailed},
		{"a note of two lines", []string{"token", "create", "--home", home, "--user", "john.doe", "--note", "a\nb"}, exitFailed},
		{"an unknown token", []string{"token", "revoke", "--home", home, "tok_aaaaaaaaaaaaaaaa"}, exitFailed},
		{"a home that is not there", []string{"check", "--home", filepath.Join(home, "no")}, exitFailed},
		{"a good home", []string{"check", "--home", home}, exitDone},
		{"the settings", []string{"config", "--home", home}, exitDone},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			code, stdout, stderr := invoke(test.args...)
			if code != test.want {
				t.Errorf("got code %d, want %d\n%s%s", code, test.want, stdout, stderr)
			}
			if code != exitDone && (stdout != "" || !strings.HasPrefix(lastLines(stderr), "troupe: ")) {
				t.Errorf("got %q on stdout and %q on stderr, want nothing and a reason", stdout, stderr)
			}
		})
	}
}

// lastLines leaves out the help that comes before a reason.
func lastLines(text string) string {
	if i := strings.LastIndex(text, "troupe: "); i >= 0 {
		return text[i:]
	}
	return text
}

// noFaultsAlone is what check says of good files while no server runs.
const noFaultsAlone = "no faults in the files; no server is running here, so it was not checked whether instances use a version that changed\n"

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
		{"the example", nil, exitDone, nil},
		{"all faults together", [][3]string{
			{"troupe.yaml", "# listen", "lissen"},
			{"identity.yaml", "mod-form]", "mod-from]"},
			{leave, "target: approved", "target: aproved"},
			{form, "[leave-request]", "leave-request\nbound: yes"}, // a workflow with faults is not called unknown
			{"forms/feedback.yaml", "maxLength: 2000", "maxLength: many"},
			{"checklists/workplace-safety.yaml", "label: All", "lable: All"},
			{"rights.yaml", "readers: ", "raeders: "},
		}, exitFailed, []string{
			`checklists/workplace-safety\.yaml:\d+:\d+: .*label.*`, `forms/feedback\.yaml:\d+:\d+: JSON Schema.*`,
			`forms/leave-form\.yaml:\d+:\d+: unknown key "bound".*`, `identity\.yaml:\d+:\d+: .*mod-form.*`, `rights\.yaml:\d+:\d+: .*readers.*`,
			`troupe\.yaml:\d+:\d+: .*`, `workflows/leave-request\.yaml:\d+:\d+: .*approved.*`,
		}},
		{"a default that nobody can replace", context, exitDone, nil},
		{"what whoever creates an instance could decide", append(context, [3]string{leave, "  svcPrivate: false\n", ""}), exitDone, []string{
			`warning: workflows/leave-request\.yaml:\d+:\d+: the condition reads svcPrivate\.daysWithoutAsking, and whoever creates .*`,
		}},
		{"a form that nobody could submit", [][3]string{
			{form, "    reason:\n", "    colour: {type: string}\n    reason:\n"},
			{leave, "      required: [days]\n", "      required: [days, until]\n"},
		}, exitFailed, []string{
			`forms/leave-form\.yaml:\d+:3: the event "submit" of workflow "leave-request" requires "until", which the form does not have.*`,
			`forms/leave-form\.yaml:\d+:5: the event "submit" of workflow "leave-request" refuses the field "colour".*`,
		}},
		{"a form that its event may refuse", [][3]string{{form, "  required: [days]\n", ""}}, exitDone, []string{
			`warning: forms/leave-form\.yaml:\d+:\d+: the event "submit" of workflow "leave-request" requires "days", which may be left out of the form .*`,
		}},
		{"two workflows of one id", [][3]string{{"workflows/purchase-order.yaml", "id: purchase-order", "id: leave-request"}}, exitFailed, []string{
			`workflows/purchase-order\.yaml:\d+:\d+: .*leave-request.*`,
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			home := exampleHome(t)
			for _, e := range test.edits {
				edit(t, home, e[0], e[1], e[2])
			}
			code, stdout, stderr := invoke("check", "--home", home)
			ok := code == test.code && !strings.Contains(stdout, "unknown workflow")
			if code == exitDone {
				ok = ok && strings.Count(stdout, "\n") == len(test.want) && stderr == noFaultsAlone
			}
			for _, want := range test.want {
				ok = ok && regexp.MustCompile("(?m)^"+want+"$").MatchString(stdout)
			}
			if !ok {
				t.Errorf("got code %d, %q and\n%s\nwant %d and\n%s", code, stderr, stdout, test.code, strings.Join(test.want, "\n"))
			}
		})
	}
}

// TestCredentialsWithoutServer makes, lists and revokes while no server runs.
func TestCredentialsWithoutServer(t *testing.T) {
	home := exampleHome(t)
	secretForm := regexp.MustCompile(`^((?:tok|ses)_[a-z2-7]{16})\.([A-Za-z0-9_-]{43})\n$`)
	for _, kind := range []string{"token", "session"} {
		code, stdout, stderr := invoke(kind, "create", "--home", home, "--user", "john.doe", "--note", "first steps")
		parts := secretForm.FindStringSubmatch(stdout)
		if code != exitDone || parts == nil || stderr != "" {
			t.Fatalf("%s create: got code %d, %q and %q on stderr, want a secret alone", kind, code, stdout, stderr)
		}
		id, secret := parts[1], parts[2]
		list := func() string {
			code, stdout, stderr := invoke(kind, "list", "--home", home)
			if code != exitDone || stderr != "" || strings.Contains(stdout, secret) {
				t.Fatalf("%s list: got code %d, %q on stderr and\n%s", kind, code, stderr, stdout)
			}
			return stdout
		}
		before := list()
		if !strings.Contains(before, id) || !strings.Contains(before, "john.doe") || !strings.Contains(before, "first steps") {
			t.Errorf("%s list: got\n%s\nwant %s, john.doe and the note in it", kind, before, id)
		}
		if code, stdout, stderr := invoke(kind, "revoke", "--home", home, id); code != exitDone || stdout != "" {
			t.Errorf("%s revoke: got code %d, %q, %q", kind, code, stdout, stderr)
		}
		if after := list(); after == before {
			t.Errorf("%s list after the revocation: got the same as before:\n%s", kind, after)
		}
	}
	info, err := os.Stat(filepath.Join(home, dataFolder))
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the store's folder: got %v, %v, want mode 0700", info.Mode(), err)
	}
}

func TestHomeIsFilledOnlyWhenEmpty(t *testing.T) {
	dir := exampleHome(t)
	if filled, err := ensureHome(dir); filled || err != nil {
		t.Errorf("a home: got %v, %v, want it left alone", filled, err)
	}
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "notes.txt"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if filled, err := ensureHome(other); filled || err == nil {
		t.Errorf("a folder with something else: got %v, %v, want it refused", filled, err)
	}
	empty := t.TempDir()
	if filled, err := ensureHome(empty); !filled || err != nil {
		t.Errorf("an empty folder: got %v, %v, want it filled", filled, err)
	}
	disk := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(disk, "lost+found"), 0o755), os.Mkdir(filepath.Join(disk, ".git"), 0o755)); err != nil {
		t.Fatal(err)
	}
	if filled, err := ensureHome(disk); !filled || err != nil {
		t.Errorf("a new disk and working tree: got %v, %v, want it filled", filled, err)
	}
}

// TestAHomeWhoseFillingWasCutOff, by a kill or a full disk, is filled again.
func TestAHomeWhoseFillingWasCutOff(t *testing.T) {
	dir := t.TempDir()
	putFile(t, dir, "workflows", "") // no folder can be made there
	if err := fillHome(dir); err == nil {
		t.Fatal("filling: got no error")
	}
	removeFile(t, dir, "workflows")
	if filled, err := ensureHome(dir); !filled || err != nil {
		t.Fatalf("got %v, %v, want it filled", filled, err)
	}
	if code, stdout, _ := invoke("check", "--home", dir); code != exitDone {
		t.Errorf("check: got %d and %s", code, stdout)
	}
	if filled, err := ensureHome(dir); filled || err != nil {
		t.Errorf("the next time: got %v, %v, want it left alone", filled, err)
	}
}

// TestAFolderThatIsNoHomeIsRefused before anything is made in it.
func TestAFolderThatIsNoHomeIsRefused(t *testing.T) {
	other, missing := t.TempDir(), filepath.Join(t.TempDir(), "missing")
	putFile(t, other, "notes.txt", "")
	wantRefusal(t, []string{"serve", "--home", other, "--listen", "127.0.0.1:0"},
		"troupe: "+other+" holds files but no identity.yaml, so it is not a home: give --home an empty or missing folder, or a home\n")
	for _, dir := range []string{other, missing} {
		for _, command := range [][]string{
			{"check"}, {"token", "list"}, {"token", "create", "--user", "john.doe"}, {"session", "list"}, {"store", "create"},
		} {
			wantRefusal(t, append(command, "--home", dir), "troupe: there is no home in "+dir+"; give --home, or run troupe serve to make one\n")
		}
	}
	if left, err := os.ReadDir(other); err != nil || len(left) != 1 {
		t.Errorf("the folder afterwards: got %v, %v, want notes.txt alone", left, err)
	}
	if _, err := os.Stat(missing); err == nil {
		t.Error("a folder was made")
	}
}

// TestASessionCannotOutlastSessionMax: a longer one is refused rather than cut.
func TestASessionCannotOutlastSessionMax(t *testing.T) {
	home := exampleHome(t)
	create := []string{"session", "create", "--home", home, "--user", "john.doe", "--expires"}
	wantRefusal(t, append(create, "30d"), "a session ends after 168h0m0s in any case: ask for no longer, or change session-max")
	mustInvoke(t, append(create, "12h")...)
	if _, help, _ := invoke("session", "create", "--help"); strings.Contains(help, "30d") || !strings.Contains(help, "--expires 12h") {
		t.Errorf("got a help whose example is refused:\n%s", help)
	}
}
