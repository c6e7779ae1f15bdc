package endtoend

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

const filePeople = `roles: [{id: clerk}, {id: manager}]
users:
  - {id: ann, roles: [clerk]}
  - {id: bob, roles: [manager]}
  - {id: eve}
  - {id: adm, privileges: [mod-repository-admin]}
`

const fileRights = `- path: /Sales
  readers: [role:manager, user:ann]
  writers: [user:eve]
- path: /Sales/secret
  readers: [user:bob]
- path: /Shared
  readers: ["*"]
`

// filesMax is when a test gives up waiting for a change to count. Promised are two
// seconds (gateway/INTERFACE.md, "Paths and their order"), which actors/repository
// holds by its own clock; here other programs may have the processors. It is far
// below the next walk of everything, which would find the change anyway.
const filesMax = 20 * time.Second

func filesHome(t testing.TB) *home {
	files := map[string]string{"identity.yaml": filePeople, "rights.yaml": fileRights}
	for _, path := range []string{
		"a.rml", "Sales/a.csv.xlsx", "Sales/.x", "Sales/x", "Sales/q.RML", "Sales/q.rml", "Sales/secret/s.rml", "Shared/b..rml", "Shared/sp ace.rml", "Shared/\u00fc\"\\.rml",
		"Temp/t.rml", "User/u.rml", "User/ann/a.rml", "User/eve/e.rml",
	} {
		files["repository/"+path] = "text"
	}
	return newHome(t, files)
}

// fileLines are the rows of group D: who asks for which extension and what comes
// back; a status alone is an error.
var fileLines = []struct {
	rule, says string // as of line
	who, query string
	want       string
}{
	{`gateway/INTERFACE.md, "Paths and their order"`, "a JSON array of paths", "ann", "?extension=xlsx", `["/Sales/a.csv.xlsx"]`},
	{`gateway/INTERFACE.md, "Extensions"`, "with a dot", "ann", "?extension=.xlsx", `["/Sales/a.csv.xlsx"]`},
	{`gateway/INTERFACE.md, "Extensions"`, "csv.xlsx", "ann", "?extension=csv.xlsx", `["/Sales/a.csv.xlsx"]`},
	{`gateway/INTERFACE.md, "Extensions"`, "csv", "ann", "?extension=csv", `[]`},
	{`gateway/INTERFACE.md, "Extensions"`, "a dotfile", "ann", "?extension=x", `["/Sales/.x"]`},
	{`gateway/INTERFACE.md, "Who may read a file"`, "a user and a role that are named", "ann", "?extension=rml", `["/Sales/q.rml","/Shared/b..rml","/Shared/sp ace.rml","/Shared/` + "\u00fc" + `\"\\.rml","/Temp/t.rml","/User/ann/a.rml","/User/u.rml"]`},
	{`gateway/INTERFACE.md, "Who may read a file"`, "a nearer entry", "bob", "?extension=rml", `["/Sales/q.rml","/Sales/secret/s.rml","/Shared/b..rml","/Shared/sp ace.rml","/Shared/` + "\u00fc" + `\"\\.rml","/Temp/t.rml","/User/u.rml"]`},
	{`gateway/INTERFACE.md, "Who may read a file"`, "nobody's role", "eve", "?extension=rml", `["/Shared/b..rml","/Shared/sp ace.rml","/Shared/` + "\u00fc" + `\"\\.rml","/Temp/t.rml","/User/eve/e.rml","/User/u.rml"]`},
	{`gateway/INTERFACE.md, "Who may read a file"`, "mod-repository-admin", "adm", "?extension=rml", `["/Sales/q.rml","/Sales/secret/s.rml","/Shared/b..rml","/Shared/sp ace.rml","/Shared/` + "\u00fc" + `\"\\.rml","/Temp/t.rml","/User/ann/a.rml","/User/eve/e.rml","/User/u.rml","/a.rml"]`},
	{`gateway/INTERFACE.md, "Extensions"`, "no match", "adm", "?extension=none", `[]`},
	{`gateway/INTERFACE.md, "Extensions"`, "case", "ann", "?extension=RML", `["/Sales/q.RML"]`},
	{`gateway/INTERFACE.md, "Extensions"`, "400 missing", "ann", "", "400 BadRequest"},
	{`gateway/INTERFACE.md, "Extensions"`, "400 blank", "ann", "?extension=%20", "400 BadRequest"},
	{`gateway/INTERFACE.md, "Extensions"`, "400 a dot is blank", "ann", "?extension=.", "400 BadRequest"},
	{`gateway/INTERFACE.md, "Query strings"`, "400 repeated", "ann", "?extension=rml&extension=x", "400 BadRequest"},
	{`gateway/INTERFACE.md, "Query strings"`, "400 malformed", "ann", "?extension=%zz", "400 BadRequest"},
	{`gateway/INTERFACE.md, "Extensions"`, "400 a control character", "ann", "?extension=%0a.rml", "400 BadRequest"},
	{`gateway/INTERFACE.md, "401 is one answer"`, "401 no token", "", "?extension=rml", "401 Unauthorized"},
	{`gateway/INTERFACE.md, "401 is one answer"`, "401 an invalid token", "nobody", "?extension=rml", "401 Unauthorized"},
}

const filesPath = "/repository/api/v1/list-files"

// says is an answer as the table has it.
func says(a answer) string {
	if a.status == 200 {
		return a.body
	}
	var body struct{ Error, Message string }
	_ = json.Unmarshal([]byte(a.body), &body)
	return fmt.Sprintf("%d %s", a.status, body.Error)
}

func TestFiles(t *testing.T) {
	for where, move := range places {
		t.Run(where, func(t *testing.T) { testFiles(t, move) })
	}
}

func testFiles(t *testing.T, move func(*testing.T, *home)) {
	h := filesHome(t)
	move(t, h)
	p := start(t, h)
	users := map[string]user{"": {p, nil}, "nobody": p.as("tok_" + strings.Repeat("a", 60))}
	for _, id := range []string{"ann", "bob", "eve", "adm"} {
		users[id] = user{p, []string{"Authentication: svc.token " + h.token(id)}}
	}
	for _, l := range fileLines {
		t.Run(nameOf(l.rule, l.says), func(t *testing.T) {
			if got := says(users[l.who].get(t, filesPath+l.query)); got != l.want {
				t.Errorf("got %s, want %s", got, l.want)
			}
		})
	}
	t.Run("Two headers, one parser: the token may stand in Authorization", func(t *testing.T) {
		if got := says(p.as(h.token("eve")).get(t, filesPath+"?extension=x")); got != "[]" {
			t.Errorf("got %s", got)
		}
	})
}

// TestOddFiles holds gateway/INTERFACE.md, "What is never listed": links, devices
// and pipes.
func TestOddFiles(t *testing.T) {
	h := filesHome(t)
	p := start(t, h)
	adm := user{p, []string{"Authentication: svc.token " + h.token("adm")}}
	at := func(name string) string { return filepath.Join(h.dir, "repository", name) }
	for _, err := range []error{
		os.Symlink("a.rml", at("link.odd")), os.Symlink(h.dir, at("out")), os.Symlink(".", at("loop")), syscall.Mkfifo(at("pipe.odd"), 0o644),
		os.Mkdir(at("folder.odd"), 0o755),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	h.write("repository/last.odd", "x")
	awaitFiles(t, adm, "what came last", "?extension=odd", `["/last.odd"]`)
	if got := says(adm.get(t, filesPath+"?extension=yaml")); got != "[]" {
		t.Errorf("files of the home are listed through a link: %s", got)
	}
}

// awaitFiles waits for an answer.
func awaitFiles(t *testing.T, u user, what, query, want string) {
	t.Helper()
	late := time.Now().Add(filesMax)
	for {
		got := says(u.get(t, filesPath+query))
		if got == want {
			return
		}
		if time.Now().After(late) {
			t.Fatalf("%s: got %s, want %s", what, got, want)
		}
		<-time.After(20 * time.Millisecond)
	}
}

// TestFilesChange holds that new, removed and renamed files and changed rights
// count, also after a kill -9.
func TestFilesChange(t *testing.T) {
	h := newHome(t, map[string]string{"identity.yaml": filePeople}) // neither repository/ nor rights.yaml
	p := start(t, h)
	ann, adm := p.as(h.token("ann")), p.as(h.token("adm"))
	awaitFiles(t, adm, "a home without files", "?extension=rml", "[]")
	rename := func(from, to string) {
		t.Helper()
		if err := os.Rename(filepath.Join(h.dir, from), filepath.Join(h.dir, to)); err != nil {
			t.Fatal(err)
		}
	}
	h.write("repository/Sales/plan/a.rml", "x")
	awaitFiles(t, adm, "the first file, in new folders", "?extension=rml", `["/Sales/plan/a.rml"]`)
	h.write("repository/Sales/plan/b.rml", "x")
	awaitFiles(t, adm, "a new file", "?extension=rml", `["/Sales/plan/a.rml","/Sales/plan/b.rml"]`)
	rename("repository/Sales/plan/b.rml", "repository/Sales/c.rml")
	awaitFiles(t, adm, "a renamed file", "?extension=rml", `["/Sales/c.rml","/Sales/plan/a.rml"]`)
	rename("repository/Sales", "repository/Sold")
	awaitFiles(t, adm, "a renamed folder", "?extension=rml", `["/Sold/c.rml","/Sold/plan/a.rml"]`)
	h.remove("repository/Sold/plan/a.rml")
	awaitFiles(t, adm, "a removed file", "?extension=rml", `["/Sold/c.rml"]`)

	awaitFiles(t, ann, "no right", "?extension=rml", `[]`)
	h.write("rights.yaml", "- {path: /Sold, readers: [role:clerk]}\n")
	awaitFiles(t, ann, "a new right", "?extension=rml", `["/Sold/c.rml"]`)
	h.write("rights.yaml", "- {path: /Sold, readers: [role:clark]}\n")
	h.write("repository/Sold/d.rml", "x")
	awaitFiles(t, ann, "a faulty right beside a new file", "?extension=rml", `["/Sold/c.rml","/Sold/d.rml"]`)
	h.write("rights.yaml", "- {path: /Sold, readers: []}\n")
	awaitFiles(t, ann, "a right that was taken away", "?extension=rml", `[]`)

	p.kill()
	h.write("repository/Sold/e.rml", "x")
	p = start(t, h)
	if got, want := says(p.as(h.token("adm")).get(t, filesPath+"?extension=rml")), `["/Sold/c.rml","/Sold/d.rml","/Sold/e.rml"]`; got != want {
		t.Errorf("after a restart: got %s, want %s", got, want)
	}
	ready := p.send(t, ask{method: "GET", path: p.base + "/readyz?verbose"})
	if !strings.Contains(ready.body, `{"name":"repository","ready":true}`) {
		t.Errorf("/readyz has no repository: %s", ready.body)
	}
}

// TestFilesStorm lists while files come and go: every answer is whole, in order
// and without a path twice.
func TestFilesStorm(t *testing.T) {
	h := newHome(t, map[string]string{"identity.yaml": filePeople, "repository/keep/always.rml": "x"})
	p := start(t, h)
	adm := p.as(h.token("adm"))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 400 {
			folder := filepath.Join(h.dir, "repository", fmt.Sprintf("f%d", i%5))
			if i%4 == 3 {
				_ = os.RemoveAll(folder)
				continue
			}
			_ = os.MkdirAll(filepath.Join(folder, "sub"), 0o755)
			_ = os.WriteFile(filepath.Join(folder, "sub", fmt.Sprintf("%d.rml", i)), nil, 0o644)
			<-time.After(time.Millisecond)
		}
	}()
	defer func() { <-done }()
	for asked := 0; ; asked++ {
		a := adm.get(t, filesPath+"?extension=rml")
		var paths []string
		if err := json.Unmarshal([]byte(a.body), &paths); err != nil || a.status != 200 {
			t.Fatalf("got %d %s", a.status, a.body)
		}
		if !slices.IsSorted(paths) || len(slices.Compact(slices.Clone(paths))) != len(paths) || !slices.Contains(paths, "/keep/always.rml") {
			t.Fatalf("got %q", paths)
		}
		select {
		case <-done:
			if asked >= 5 {
				return
			}
		default:
		}
	}
}
