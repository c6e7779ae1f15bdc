package home

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestTheLimitsOfTheDocument tries the limits of cmd/troupe/HOME.md, "Limits of files": a home at the limit has no fault, and
// one above it has.
func TestTheLimitsOfTheDocument(t *testing.T) {
	const boss = "roles: [{id: r}]\n"
	identity := func(text string) map[string]string { return map[string]string{IdentityFile: text} }
	form := func(more string) map[string]string {
		return map[string]string{IdentityFile: boss, "forms/f.yaml": "id: f\naccess: {roles: [r]}\nworkflows: []\n" + more}
	}
	schema := "schema: {type: object}\n"
	list := func(more string) map[string]string {
		return map[string]string{IdentityFile: boss, "checklists/c.yaml": "id: c\naccess: {roles: [r]}\n" + more}
	}
	x := func(n int) string { return strings.Repeat("x", n) }
	y := func(n int) string { return strings.Repeat("ä", n) }
	refs := func(files, bytes int) map[string]string {
		home, properties := form(""), ""
		for i := range files {
			name := fmt.Sprintf("s%d.schema.json", i)
			properties += fmt.Sprintf("p%d: {$ref: %s},", i, name)
			home["forms/"+name] = `{"type": "string"}`
		}
		home["forms/f.yaml"] += "schema: {type: object, properties: {" + properties + "}}\n"
		if bytes > 0 {
			home["forms/s0.schema.json"] = `{"description":"` + x(bytes-len(`{"type":"object","properties":{"p0":{"$ref":"s0.schema.json"}}}{"description":""}`)) + `"}`
		}
		return home
	}
	tries := map[string]func(n int) map[string]string{
		"any text file, `troupe.yaml` included": func(n int) map[string]string { return identity(boss + "#" + x(n-len(boss)-1)) },
		"values in a file, after aliases are expanded": func(n int) map[string]string {
			return form(schema + "ui: {a: [" + strings.Repeat("1,", n-19) + "1]}\n")
		},
		"lists and mappings inside each other": func(n int) map[string]string {
			return form(schema + "ui: " + strings.Repeat("{a: ", n-1) + "1" + strings.Repeat("}", n-1) + "\n")
		},
		"id of a role, user, form, checklist or item": func(n int) map[string]string { return identity("roles: [{id: " + x(n) + "}]\n") },
		"name of a role or user":                      func(n int) map[string]string { return identity("users: [{id: a, name: " + y(n) + "}]\n") },
		"email of a user":                             func(n int) map[string]string { return identity("users: [{id: a, email: a@" + x(n-2) + "}]\n") },
		"folders in a path of `rights.yaml`": func(n int) map[string]string {
			return map[string]string{IdentityFile: boss, RightsFile: "- path: " + strings.Repeat("/a", n) + "\n  readers: []\n"}
		},
		"name of a form or checklist":        func(n int) map[string]string { return form(schema + "name: " + y(n) + "\n") },
		"description of a form or checklist": func(n int) map[string]string { return form(schema + "description: " + y(n) + "\n") },
		"items of a checklist": func(n int) map[string]string {
			items := "items:\n"
			for i := range n {
				items += fmt.Sprintf("  - {id: i%d}\n", i)
			}
			return list(items)
		},
		"label of an item":                                   func(n int) map[string]string { return list("items: [{id: a, label: " + y(n) + "}]\n") },
		"help of an item":                                    func(n int) map[string]string { return list("items: [{id: a, help: " + y(n) + "}]\n") },
		"files that the schema of a form refers to":          func(n int) map[string]string { return refs(n, 0) },
		"schema of a form, with the files that it refers to": func(n int) map[string]string { return refs(1, n) },
	}
	document, err := os.ReadFile("../../cmd/troupe/HOME.md")
	require.NoError(t, err)
	_, section, _ := strings.Cut(string(document), "\n## Limits of files\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for text := range strings.Lines(section) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(text), "|"), " | ")
		if len(cells) != 3 {
			continue
		}
		input := strings.TrimSpace(cells[0])
		try, ok := tries[input]
		if !ok {
			continue
		}
		delete(tries, input)
		figure := regexp.MustCompile(`^([0-9,]+)( MiB)?`).FindStringSubmatch(strings.TrimSpace(cells[1]))
		if figure == nil {
			t.Errorf("%s: %q is no figure", input, cells[1])
			continue
		}
		n, _ := strconv.Atoi(strings.ReplaceAll(figure[1], ",", ""))
		if figure[2] != "" {
			n <<= 20
		}
		for more, want := range map[int]bool{0: false, 1: true} {
			files := fstest.MapFS{}
			for name, text := range try(n + more) {
				files[name] = &fstest.MapFile{Data: []byte(text)}
			}
			_, err := Load(files, parser(t))
			assert.Equal(t, want, err != nil, "%s: with %d: got %v", input, n+more, err)
		}
	}
	for input := range tries {
		t.Errorf("the table has no row %q", input)
	}
}
