package gateway_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"troupe/actors/actorstest"
	"troupe/actors/identity"
	"troupe/actors/template/templatetest"
)

// fileHome has files of each kind, and those who read some of them.
func fileHome() map[string]string {
	files := map[string]string{
		"identity.yaml": `roles: [{id: clerk}, {id: manager}]
users:
  - {id: ann, roles: [clerk]}
  - {id: bob, roles: [manager]}
  - {id: eve}
  - {id: adm, privileges: [mod-repository-admin]}
`,
		"rights.yaml": `
- {path: /Sales, readers: [role:manager, user:ann], writers: [user:eve]}
- {path: /Sales/secret, readers: [user:bob]}
- {path: /Shared, readers: ["*"]}
`,
		"repository/Sales/a.rml":       `<r t="${z}"><c>${a b#date#1}</c></r>`,
		"repository/Sales/b.docx":      string(templatetest.Docx("<w:p><w:r><w:t>${na</w:t></w:r><w:r><w:t>me#textarea:4#x}</w:t></w:r></w:p>")),
		"repository/Sales/none.rml":    "<r/>",
		"repository/Sales/nested.rml":  "<r>${b}${b##x}${a#lookup(x,${b})#c}${b#date}</r>",
		"repository/Sales/types.rml":   `<r>${a#choice(A,B)#A}${b#My type}${c\#d##"&lt;&amp;\}}</r>`,
		"repository/Sales/broken.rml":  "<r>",
		"repository/Sales/fake.docx":   "<r/>",
		"repository/Sales/sp ü+ce.rml": "<r/>",
		"repository/closed.rml":        "<r>${secret}</r>",
	}
	for _, path := range []string{"a.doc", "Sales/.doc", "Sales/q.DOC", "Sales/a.csv.xlsx", "Sales/secret/s.doc", "Shared/b..doc", "Shared/\u2028</script>\"\\.doc", "Temp/t.doc", "User/u.doc", "User/ann/a.doc", "User/eve/e.doc"} {
		files["repository/"+path] = "text"
	}
	return files
}

const (
	listFiles   = "/repository/api/v1/list-files?extension="
	rmlOf       = "/rml-engine/api/v1/parameters?rml="
	docxOf      = "/docx-engine/api/v1/parameters?docx="
	strangeName = `"/Shared/` + "\u2028" + `</script>\"\\.doc"`
)

// fileLines are the rows of groups C and D: who asks for what and what comes back, for
// an error its status, label and a part of its message. Names, rights and parameters
// of all kinds are held by the tests of actors/repository and actors/template.
var fileLines = []struct {
	rule, says      string // as of line
	who, path, want string
}{
	{`gateway/INTERFACE.md, "Paths and their order"`, "a JSON array of paths", "ann", listFiles + "xlsx", `["/Sales/a.csv.xlsx"]`},
	{`gateway/INTERFACE.md, "Extensions"`, "with a dot", "ann", listFiles + ".csv.x%6csx", `["/Sales/a.csv.xlsx"]`},
	{`gateway/INTERFACE.md, "Extensions"`, "not at the end", "ann", listFiles + "csv", `[]`},
	{`gateway/INTERFACE.md, "Extensions"`, "case", "ann", listFiles + "DOC", `["/Sales/q.DOC"]`},
	{`gateway/INTERFACE.md, "Extensions"`, "missing", "ann", strings.TrimSuffix(listFiles, "?extension="), `400 BadRequest missing or blank`},
	{`gateway/INTERFACE.md, "Extensions"`, "empty", "ann", listFiles, `400 BadRequest missing or blank`},
	{`gateway/INTERFACE.md, "Extensions"`, "a blank behind the dot", "ann", listFiles + ".+", `400 BadRequest missing or blank`},
	{`gateway/INTERFACE.md, "Extensions"`, "a control character", "ann", listFiles + "%00", `400 BadRequest control character`},
	{`gateway/INTERFACE.md, "Extensions"`, "not UTF-8", "ann", listFiles + "%ff", `400 BadRequest not UTF-8`},
	{`gateway/INTERFACE.md, "Extensions"`, "10 kB", "ann", listFiles + strings.Repeat("a", 10_000), `400 BadRequest longer than`},
	{`gateway/INTERFACE.md, "Query strings"`, "repeated extension", "ann", listFiles + "doc&extension=doc", `400 BadRequest repeated`},
	{`gateway/INTERFACE.md, "Query strings"`, "malformed extension", "ann", listFiles + "%zz", `400 BadRequest malformed`},
	{`gateway/INTERFACE.md, "Query strings"`, "another parameter of files", "ann", listFiles + "doc&limit=1", `400 BadRequest unknown query parameter`},
	{`gateway/INTERFACE.md, "Who may read a file"`, "a user who is named", "ann", listFiles + "doc", `["/Sales/.doc","/Shared/b..doc",` + strangeName + `,"/Temp/t.doc","/User/ann/a.doc","/User/u.doc"]`},
	{`gateway/INTERFACE.md, "Who may read a file"`, "a role, and a nearer entry", "bob", listFiles + "doc", `["/Sales/.doc","/Sales/secret/s.doc","/Shared/b..doc",` + strangeName + `,"/Temp/t.doc","/User/u.doc"]`},
	{`gateway/INTERFACE.md, "Who may read a file"`, "nobody's role", "eve", listFiles + "doc", `["/Shared/b..doc",` + strangeName + `,"/Temp/t.doc","/User/eve/e.doc","/User/u.doc"]`},
	{`gateway/INTERFACE.md, "Who may read a file"`, "mod-repository-admin", "adm", listFiles + "doc", `["/Sales/.doc","/Sales/secret/s.doc","/Shared/b..doc",` + strangeName + `,"/Temp/t.doc","/User/ann/a.doc","/User/eve/e.doc","/User/u.doc","/a.doc"]`},
	{`gateway/INTERFACE.md, "Which group accepts which credential"`, "a token in Authorization", "authorization", listFiles + "xlsx", `["/Sales/a.csv.xlsx"]`},
	{`gateway/INTERFACE.md, "Which group accepts which credential"`, "a session", "session", listFiles + "xlsx", `["/Sales/a.csv.xlsx"]`},
	{`gateway/INTERFACE.md, "401 is one answer"`, "files without a credential", "", listFiles + "xlsx", `401 Unauthorized`},
	{`gateway/INTERFACE.md, "401 is one answer"`, "files with one that is none, and a wrong query", "nobody", listFiles, `401 Unauthorized`},
	{`gateway/INTERFACE.md, "401 is one answer"`, "parameters without a credential", "", rmlOf + "/Sales/a.rml", `401 Unauthorized`},

	{`gateway/INTERFACE.md, "Places in a report template"`, "attributes and text", "ann", rmlOf + "/Sales/a.rml", `[{"name":"a b","type":"date","defaultValue":"1"},{"name":"z","type":"","defaultValue":""}]`},
	{`gateway/INTERFACE.md, "Places in a document template"`, "cut into runs", "ann", docxOf + "%2FSales/b.docx", `[{"name":"name","type":"textarea:4","defaultValue":"x"}]`},
	{`gateway/INTERFACE.md, "Nested and repeated declarations"`, "nested, and the first that says something", "ann", rmlOf + "/Sales/nested.rml", `[{"name":"a","type":"lookup(x,${b})","defaultValue":"c"},{"name":"b","type":"","defaultValue":"x"}]`},
	{`gateway/INTERFACE.md, "Parameter types"`, "as they are declared", "ann", rmlOf + "/Sales/types.rml", `[{"name":"a","type":"choice(A,B)","defaultValue":"A"},{"name":"b","type":"My type","defaultValue":""},{"name":"c#d","type":"","defaultValue":"\"<&}"}]`},
	{`gateway/INTERFACE.md, "Grammar"`, "[] when the file has none", "ann", rmlOf + "/Sales/sp%20%C3%BC%2Bce.rml", `[]`},
	{`gateway/INTERFACE.md, "Who may read a file"`, "mod-repository-admin reads parameters, too", "adm", rmlOf + "/closed.rml", `[{"name":"secret","type":"","defaultValue":""}]`},
	{`gateway/INTERFACE.md, "The path of a template"`, "missing", "ann", strings.TrimSuffix(rmlOf, "?rml="), `400 BadRequest "rml" is missing`},
	{`gateway/INTERFACE.md, "The path of a template"`, "empty", "ann", docxOf, `400 BadRequest "docx" is missing`},
	{`gateway/INTERFACE.md, "Query strings"`, "of the other kind", "ann", strings.Replace(rmlOf, "?rml", "?docx", 1) + "/Sales/b.docx", `400 BadRequest unknown query parameter`},
	{`gateway/INTERFACE.md, "Query strings"`, "repeated path", "ann", rmlOf + "a&rml=b", `400 BadRequest repeated`},
	{`gateway/INTERFACE.md, "Query strings"`, "malformed path", "ann", rmlOf + "%zz", `400 BadRequest malformed`},
	{`gateway/INTERFACE.md, "What is not a template"`, "by its content", "ann", rmlOf + "/Sales/broken.rml", `422 Unprocessable`},
	{`gateway/INTERFACE.md, "What is not a template"`, "by its name", "ann", docxOf + "/Sales/a.rml", `422 Unprocessable`},
	{`gateway/INTERFACE.md, "What is not a template"`, "by its bytes", "ann", docxOf + "/Sales/fake.docx", `422 Unprocessable`},
}

func TestInterfaceFiles(t *testing.T) {
	s := startService(t, serviceOptions{Options: actorstest.Options{Files: fileHome()}})
	users := map[string]user{
		"": s.user(), "nobody": s.user("Authentication: svc.token tok_" + strings.Repeat("a", 60)), "session": s.desk("ann"), "authorization": s.as("ann"),
	}
	for _, name := range []identity.UserID{"ann", "bob", "eve", "adm"} {
		users[string(name)] = s.user("Authentication: svc.token " + s.Token(name))
	}
	for _, l := range fileLines {
		t.Run(nameOf(l.rule, l.says), func(t *testing.T) {
			u := users[l.who]
			a := u.Get(t, l.path)
			if status, rest, _ := strings.Cut(l.want, " "); a.Status == 200 {
				assert.Equal(t, l.want, a.Body)
			} else if word, part, _ := strings.Cut(rest, " "); fmt.Sprint(a.Status) != status || !strings.Contains(a.Body, strings.ReplaceAll(part, `"`, `\"`)) {
				t.Errorf("got %d %s, want %s", a.Status, a.Body, l.want)
			} else if reason := a.FaultReason(a.Status, word); reason != "" {
				t.Error(reason)
			}
			head := s.Send(t, request{Method: "HEAD", Path: l.path, Headers: u.Credential})
			assert.True(t, head.Status == a.Status && head.Body == "", "HEAD: got %d %q", head.Status, head.Body)
		})
	}
	t.Run(nameOf(`gateway/INTERFACE.md, "404 is constant"`, "a template that is missing, unreadable or no path"), func(t *testing.T) {
		missing := users["bob"].Get(t, rmlOf+"/nowhere.rml")
		missing.WantFault(t, 404, "NotFound")
		for _, path := range []string{"/closed.rml", "/Sales/../Sales/a.rml", "Sales/a.rml", "../../etc/passwd", "/Sales", strings.Repeat("x", 5000), "/Sales/a.rml%00"} {
			wantSameAnswer(t, users["bob"].Get(t, rmlOf+path), missing)
		}
	})
}
