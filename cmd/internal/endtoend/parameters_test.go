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

// parameterLines are rows of interfaces C and decisions C: who asks for what and
// what comes back; a status alone is an error.
var parameterLines = []struct {
	holds, who, engine, query string
	want                      string
}{
	{"interfaces C: a report template", "ann", "rml", "?rml=/Sales/a.rml", `[{"name":"a b","type":"date","defaultValue":"1"},{"name":"z","type":"","defaultValue":""}]`},
	{"interfaces C: a document template", "ann", "docx", "?docx=/Sales/b.docx", `[{"name":"name","type":"textarea:4","defaultValue":"x"}]`},
	{"interfaces C: [] when the file has none", "ann", "rml", "?rml=/Sales/none.rml", `[]`},
	{"interfaces C: blanks and special characters, URL-encoded", "ann", "rml", "?rml=%2FSales%2Fsp%20%C3%BC%2Bce.rml", `[]`},
	{"interfaces C: 400 rml missing", "ann", "rml", "", "400 BadRequest"},
	{"interfaces C: 400 docx missing", "ann", "docx", "", "400 BadRequest"},
	{"reliability 3.4: 400 empty", "ann", "rml", "?rml=", "400 BadRequest"},
	{"reliability 3.4: 400 repeated", "ann", "rml", "?rml=a&rml=b", "400 BadRequest"},
	{"reliability 3.4: 400 malformed", "ann", "rml", "?rml=%zz", "400 BadRequest"},
	{"interfaces C: the caller's read rights", "bob", "rml", "?rml=/Sales/a.rml", "404 NotFound"},
	{"decisions C: missing", "ann", "rml", "?rml=/Sales/nowhere.rml", "404 NotFound"},
	{"decisions C: not canonical", "ann", "rml", "?rml=/Sales/../Sales/a.rml", "404 NotFound"},
	{"decisions C: no leading slash", "ann", "rml", "?rml=Sales/a.rml", "404 NotFound"},
	{"decisions C: not a template", "ann", "rml", "?rml=/Sales/broken.rml", "422 Unprocessable"},
	{"decisions C: not a template, by its name", "ann", "docx", "?docx=/Sales/a.rml", "422 Unprocessable"},
	{"decisions C: not a template, by its content", "ann", "docx", "?docx=/Sales/fake.docx", "422 Unprocessable"},
	{"decisions D: mod-repository-admin reads every file, here too", "adm", "rml", "?rml=/closed.rml", `[{"name":"secret","type":"","defaultValue":""}]`},
	{"decisions: 401 without a credential", "", "rml", "?rml=/Sales/a.rml", "401 Unauthorized"},
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
		t.Run(l.holds, func(t *testing.T) {
			if got := says(users[l.who].get(t, path(l.engine)+l.query)); got != l.want {
				t.Errorf("got %s, want %s", got, l.want)
			}
		})
	}
	t.Run("decisions C: missing and unreadable are the same bytes", func(t *testing.T) {
		missing, hidden := users["bob"].get(t, path("rml")+"?rml=/Sales/none.at.all.rml"), users["bob"].get(t, path("rml")+"?rml=/Sales/a.rml")
		if missing.body != hidden.body || strings.Contains(missing.body, "Sales") {
			t.Errorf("got %s and %s", missing.body, hidden.body)
		}
	})
	p.stop()
}
