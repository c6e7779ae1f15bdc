package endtoend

import (
	"archive/zip"
	"bytes"
	"strings"
	"testing"
)

// documentFile is a document template with one parameter, cut in two by its runs.
func documentFile(t *testing.T) string {
	t.Helper()
	var file bytes.Buffer
	w := zip.NewWriter(&file)
	for _, part := range [][2]string{
		{"[Content_Types].xml", `<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="xml" ContentType="application/xml"/></Types>`},
		{"_rels/.rels", `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="word/document.xml"/></Relationships>`},
		{"word/document.xml", `<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body><w:p><w:r><w:t>${na</w:t></w:r><w:r><w:t>me#textarea:4#x}</w:t></w:r></w:p></w:body></w:document>`},
	} {
		out, err := w.Create(part[0])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := out.Write([]byte(part[1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return file.String()
}

// parameterLines are the rows of group C: who asks for what and what comes back; a
// status alone is an error.
var parameterLines = []struct {
	rule, says         string // as of line
	who, engine, query string
	want               string
}{
	{`gateway/INTERFACE.md, "Places in a report template"`, "attributes and text", "ann", "rml", "?rml=/Sales/a.rml", `[{"name":"a b","type":"date","defaultValue":"1"},{"name":"z","type":"","defaultValue":""}]`},
	{`gateway/INTERFACE.md, "Places in a document template"`, "cut into runs", "ann", "docx", "?docx=/Sales/b.docx", `[{"name":"name","type":"textarea:4","defaultValue":"x"}]`},
	{`gateway/INTERFACE.md, "Nested and repeated declarations"`, "nested, and the first that says something", "ann", "rml", "?rml=/Sales/nested.rml", `[{"name":"a","type":"lookup(x,${b})","defaultValue":"c"},{"name":"b","type":"","defaultValue":"x"}]`},
	{`gateway/INTERFACE.md, "Parameter types"`, "as they are declared", "ann", "rml", "?rml=/Sales/types.rml", `[{"name":"a","type":"choice(A,B)","defaultValue":"A"},{"name":"b","type":"My type","defaultValue":""},{"name":"c#d","type":"","defaultValue":"}"}]`},
	{`gateway/INTERFACE.md, "Grammar"`, "[] when the file has none", "ann", "rml", "?rml=/Sales/none.rml", `[]`},
	{`gateway/INTERFACE.md, "The path of a template"`, "blanks and special characters, URL-encoded", "ann", "rml", "?rml=%2FSales%2Fsp%20%C3%BC%2Bce.rml", `[]`},
	{`gateway/INTERFACE.md, "The path of a template"`, "400 rml missing", "ann", "rml", "", "400 BadRequest"},
	{`gateway/INTERFACE.md, "The path of a template"`, "400 docx missing", "ann", "docx", "", "400 BadRequest"},
	{`gateway/INTERFACE.md, "The path of a template"`, "400 empty", "ann", "rml", "?rml=", "400 BadRequest"},
	{`gateway/INTERFACE.md, "Query strings"`, "400 repeated", "ann", "rml", "?rml=a&rml=b", "400 BadRequest"},
	{`gateway/INTERFACE.md, "Query strings"`, "400 malformed", "ann", "rml", "?rml=%zz", "400 BadRequest"},
	{`gateway/INTERFACE.md, "The path of a template"`, "the caller's read rights", "bob", "rml", "?rml=/Sales/a.rml", "404 NotFound"},
	{`gateway/INTERFACE.md, "The path of a template"`, "missing", "ann", "rml", "?rml=/Sales/nowhere.rml", "404 NotFound"},
	{`gateway/INTERFACE.md, "The path of a template"`, "not canonical", "ann", "rml", "?rml=/Sales/../Sales/a.rml", "404 NotFound"},
	{`gateway/INTERFACE.md, "The path of a template"`, "no leading slash", "ann", "rml", "?rml=Sales/a.rml", "404 NotFound"},
	{`gateway/INTERFACE.md, "What is not a template"`, "not a template", "ann", "rml", "?rml=/Sales/broken.rml", "422 Unprocessable"},
	{`gateway/INTERFACE.md, "What is not a template"`, "not a template, by its name", "ann", "docx", "?docx=/Sales/a.rml", "422 Unprocessable"},
	{`gateway/INTERFACE.md, "What is not a template"`, "not a template, by its content", "ann", "docx", "?docx=/Sales/fake.docx", "422 Unprocessable"},
	{`gateway/INTERFACE.md, "Who may read a file"`, "mod-repository-admin reads every file, here too", "adm", "rml", "?rml=/closed.rml", `[{"name":"secret","type":"","defaultValue":""}]`},
	{`gateway/INTERFACE.md, "401 is one answer"`, "without a credential", "", "rml", "?rml=/Sales/a.rml", "401 Unauthorized"},
}

func TestParameters(t *testing.T) {
	for where, move := range places {
		t.Run(where, func(t *testing.T) { testParameters(t, move) })
	}
}

func testParameters(t *testing.T, move func(*testing.T, *home)) {
	h := newHome(t, map[string]string{
		"identity.yaml":                     filePeople,
		"rights.yaml":                       "- {path: /Sales, readers: ['user:ann']}\n",
		"repository/Sales/a.rml":            `<r t="${z}"><c>${a b#date#1}</c></r>`,
		"repository/Sales/b.docx":           documentFile(t),
		"repository/Sales/none.rml":         "<r/>",
		"repository/Sales/nested.rml":       "<r>${b}${b##x}${a#lookup(x,${b})#c}${b#date}</r>",
		"repository/Sales/types.rml":        `<r>${a#choice(A,B)#A}${b#My type}${c\#d##\}}</r>`,
		"repository/Sales/sp \u00fc+ce.rml": "<r/>",
		"repository/Sales/broken.rml":       "<r>",
		"repository/Sales/fake.docx":        "<r/>",
		"repository/closed.rml":             "<r>${secret}</r>",
	})
	move(t, h)
	p := start(t, h)
	users := map[string]user{"": {p, nil}}
	for _, id := range []string{"ann", "bob", "adm"} {
		users[id] = user{p, []string{"Authentication: svc.token " + h.token(id)}}
	}
	path := func(engine string) string { return "/" + engine + "-engine/api/v1/parameters" }
	for _, l := range parameterLines {
		t.Run(nameOf(l.rule, l.says), func(t *testing.T) {
			if got := says(users[l.who].get(t, path(l.engine)+l.query)); got != l.want {
				t.Errorf("got %s, want %s", got, l.want)
			}
		})
	}
	t.Run("404 is constant: missing and unreadable are the same bytes", func(t *testing.T) {
		missing, hidden := users["bob"].get(t, path("rml")+"?rml=/Sales/none.at.all.rml"), users["bob"].get(t, path("rml")+"?rml=/Sales/a.rml")
		if missing.body != hidden.body || strings.Contains(missing.body, "Sales") {
			t.Errorf("got %s and %s", missing.body, hidden.body)
		}
	})
	p.stop()
}
