package main

import (
	"bytes"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
)

// invoke runs one command line in this process.
func invoke(args ...string) (code int, stdout, stderr string) { return invokeWith("", args...) }

// invokeWith is invoke with standard input.
func invokeWith(stdin string, args ...string) (code int, stdout, stderr string) {
	var out, err bytes.Buffer
	code = run(args, strings.NewReader(stdin), &out, &err)
	return code, out.String(), err.String()
}

// invocation is one command line and what it must do.
type invocation struct {
	name, stdin string
	args        []string
	code        int
	stdout      string // exactly
	stderr      string // a part of it; empty: nothing there
}

func (i *invocation) run(t *testing.T) {
	t.Helper()
	code, stdout, stderr := invokeWith(i.stdin, i.args...)
	if code != i.code || stdout != i.stdout {
		t.Errorf("%v: got code %d and\n%s\nwant %d and\n%s\nstderr: %s", i.args, code, stdout, i.code, i.stdout, stderr)
	}
	if !strings.Contains(stderr, i.stderr) || i.stderr == "" && stderr != "" {
		t.Errorf("%v: got %q on stderr, want %q in it", i.args, stderr, i.stderr)
	}
}

// runAll runs them in their order.
func runAll(t *testing.T, all []invocation) {
	t.Helper()
	for i := range all {
		t.Run(all[i].name, all[i].run)
	}
}

func exampleHome(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "home")
	if filled, err := ensureHome(dir); !filled || err != nil {
		t.Fatalf("ensureHome: got %v, %v, want a filled home", filled, err)
	}
	return dir
}

// smallHome is exampleHome without the forms of orders: its workflows can be taken away one by one.
func smallHome(t *testing.T) string {
	t.Helper()
	dir := exampleHome(t)
	for _, name := range []string{"order-form.yaml", "order-decision.yaml"} {
		if err := os.Remove(filepath.Join(dir, "forms", name)); err != nil {
			t.Fatal(err)
		}
	}
	edit(t, dir, "workflows/purchase-order.yaml", "          form: order-decision\n", "")
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

// TestEndSignals: a signal that is ignored stays so.
func TestEndSignals(t *testing.T) {
	was := signal.Ignored(syscall.SIGHUP)
	defer func() {
		if !was {
			signal.Reset(syscall.SIGHUP)
		}
	}()
	if got := endSignals(); slices.Contains(got, os.Signal(syscall.SIGHUP)) == was {
		t.Errorf("SIGHUP ignored: %v, got %v", was, got)
	}
	signal.Ignore(syscall.SIGHUP)
	if got := endSignals(); slices.Contains(got, os.Signal(syscall.SIGHUP)) {
		t.Errorf("beside nohup: got %v", got)
	}
}

func TestExitCodes(t *testing.T) {
	home := exampleHome(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	runAll(t, []invocation{
		{name: "no command", args: nil, code: exitUsage, stderr: "troupe: "},
		{name: "an unknown command", args: []string{"server"}, code: exitUsage, stderr: `troupe: unknown command "server" for "troupe"`},
		{name: "a group without a command", args: []string{"token"}, code: exitUsage, stderr: "troupe: "},
		{name: "an unknown command of a group", args: []string{"token", "make"}, code: exitUsage, stderr: "troupe: "},
		{name: "an unknown flag", args: []string{"check", "--hom", home}, code: exitUsage, stderr: "troupe: "},
		{name: "a flag without its value", args: []string{"check", "--home"}, code: exitUsage, stderr: "troupe: "},
		{name: "an argument too many", args: []string{"check", "here"}, code: exitUsage, stderr: "troupe: \"here\" is one argument too many: troupe check\n"},
		{name: "an argument too few", args: []string{"token", "revoke", "--home", home}, code: exitUsage, stderr: "troupe: ID is missing: troupe token revoke ID\n"},
		{name: "no file", args: []string{"parameters"}, code: exitUsage, stderr: "troupe: FILE is missing: troupe parameters FILE...\n"},
		{name: "no user", args: []string{"token", "create", "--home", home}, code: exitUsage, stderr: "troupe: "},
		{name: "a wrong time", args: []string{"token", "create", "--home", home, "--user", "john.doe", "--expires", "soon"}, code: exitUsage, stderr: "troupe: "},
		{name: "no time at all", args: []string{"token", "create", "--home", home, "--user", "john.doe", "--expires", "0s"}, code: exitUsage, stderr: "troupe: "},
		{name: "an unknown user", args: []string{"token", "create", "--home", home, "--user", "nobody"}, code: exitFailed, stderr: "troupe: "},
		{name: "a note of two lines", args: []string{"token", "create", "--home", home, "--user", "john.doe", "--note", "a\nb"}, code: exitFailed, stderr: "troupe: "},
		{name: "an unknown token", args: []string{"token", "revoke", "--home", home, "tok_aaaaaaaaaaaaaaaa"}, code: exitFailed, stderr: "troupe: "},
		{name: "a port that is taken", args: []string{"serve", "--home", home, "--listen", taken.Addr().String()}, code: exitFailed, stderr: "address already in use; choose another address with --listen, or with listen: in troupe.yaml\n"},
		{name: "another port that is taken", args: []string{"serve", "--home", home, "--listen", "127.0.0.1:0", "--admin", taken.Addr().String()}, code: exitFailed, stderr: "address already in use; choose another address with --admin, or with admin: in troupe.yaml\n"},
		{name: "a home that is not there", args: []string{"check", "--home", filepath.Join(home, "no")}, code: exitFailed, stderr: "troupe: "},
	})
}

// noFaultsAlone is what check says of good files while no server runs.
const noFaultsAlone = "no faults in the files; no server is running here, so it was not checked whether instances use a version that changed, or whether a workflow is published by itself already\n"

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
			{"checklists/workplace-safety.yaml", "label: {en: All", "lable: {en: All"},
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
		{"two workflows of one id", [][3]string{{"workflows/stock-take.yaml", "id: stock-take", "id: leave-request"}}, exitFailed, []string{
			`workflows/stock-take\.yaml:\d+:\d+: .*leave-request.*`,
		}},
		{"a task whose form is not there", [][3]string{{"workflows/purchase-order.yaml", "form: order-decision", "form: order-desicion"}}, exitFailed, []string{
			`workflows/purchase-order\.yaml:\d+:\d+: no form has the id "order-desicion" \(did you mean "order-decision"\?\)`,
		}},
		{"a task whose event refuses what its form sends", [][3]string{{"forms/order-decision.yaml", "    comment:\n", "    coment:\n"}, {"forms/order-decision.yaml", "  comment: {", "  coment: {"}}, exitFailed, []string{
			`workflows/purchase-order\.yaml:\d+:\d+: form "order-decision": the event "approve" refuses the field "coment" \(did you mean "comment"\?\)`,
		}},
		{"a task that does not take what its form sends", [][3]string{{"forms/order-decision.yaml", "submit: approve", "submit: aprove"}}, exitFailed, []string{
			`workflows/purchase-order\.yaml:\d+:\d+: the form "order-decision" sends the event "aprove", which the task does not take \(did you mean "approve"\?\)`,
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

// TestHomeIsFilledOnlyWhenEmpty, as a new disk or a new working tree is.
func TestHomeIsFilledOnlyWhenEmpty(t *testing.T) {
	for _, test := range []struct {
		name, file      string // what is in the folder
		filled, refused bool
	}{
		{"a home", "identity.yaml", false, false},
		{"something else", "notes.txt", false, true},
		{"nothing", "", true, false},
		{"a new disk", "lost+found/x", true, false},
		{"a new working tree", ".git/x", true, false},
	} {
		dir := t.TempDir()
		if test.file != "" {
			putFile(t, dir, test.file, "")
		}
		if filled, err := ensureHome(dir); filled != test.filled || (err != nil) != test.refused {
			t.Errorf("%s: got %v, %v, want %v, refused %v", test.name, filled, err, test.filled, test.refused)
		}
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
			want := "; give --home, or run troupe serve to make one\n"
			if dir == other {
				want = ": it holds files but no identity.yaml; give --home a home\n"
			}
			wantRefusal(t, append(command, "--home", dir), "troupe: there is no home in "+dir+want)
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
	wantRefusal(t, append(create, "30d"), "a session ends after 168 hours in any case: ask for no longer, or change the setting sessionMax")
	mustInvoke(t, append(create, "12h")...)
	if _, help, _ := invoke("session", "create", "--help"); strings.Contains(help, "30d") || !strings.Contains(help, "--expires 12h") {
		t.Errorf("got a help whose example is refused:\n%s", help)
	}
}
