package treecheck

import (
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A citation is the path of a document and, after a comma, headings of it in
// quotes. The path counts from the top of the tree or from the folder of the
// file that cites.
var (
	cited        = regexp.MustCompile(`([A-Za-z0-9_.][A-Za-z0-9_./-]*\.md)\b\x60?((?:(?:,| and|, and) "[^"]+")*)`)
	citedHeading = regexp.MustCompile(`"([^"]+)"`)
	link         = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	promise      = regexp.MustCompile(`\b[PF][1-9][0-9]?\b`)
	withHeading  = regexp.MustCompile(`\.md, "[^"]+"`)
	address      = regexp.MustCompile(`https?://[^\s"]+`)
)

// ruled are the documents of which every rule, a heading of the third level, is
// cited by a test.
var ruled = []string{"gateway/INTERFACE.md", "persistence/PROMISES.md"}

// promises explains the labels of a letter and a number.
const promises = "persistence/PROMISES.md"

// passage is a piece of text that may cite: a comment or a string of Go, or a
// paragraph of another file.
type passage struct {
	path    string
	line    int
	text    string // on one line
	comment bool   // of Go
	prose   bool   // a comment of Go or a document
	test    bool   // only tests read it
}

func (p passage) faultf(format string, args ...any) string {
	return fmt.Sprintf("%s:%d: %s", p.path, p.line, fmt.Sprintf(format, args...))
}

func TestCitations(t *testing.T) { holds(t, checkCitations) }

// checkCitations demands that each cited document and heading is there, that a
// promise is cited with its document, and that each rule is cited by a test.
func checkCitations(t *testing.T, tree fs.FS) (faults []string) {
	docs := documents(t, tree)
	held := map[string]bool{}
	for _, p := range passages(t, tree) {
		text := address.ReplaceAllString(p.text, "")
		for _, at := range cited.FindAllStringSubmatchIndex(text, -1) {
			c := []string{text[at[0]:at[1]], text[at[2]:at[3]], text[at[4]:at[5]]}
			if elsewhere := at[0] > 0 && text[at[0]-1] == '/'; elsewhere {
				continue // not of the tree
			}
			if !p.prose && c[2] == "" && !strings.Contains(c[1], "/") {
				continue // code has names of files for other reasons
			}
			name, headings := resolve(docs, p.path, c[1])
			if name == "" {
				faults = append(faults, p.faultf("there is no %s", c[1]))
				continue
			}
			for _, h := range citedHeading.FindAllStringSubmatch(c[2], -1) {
				heading := find(headings, h[1])
				if heading == "" {
					faults = append(faults, p.faultf("%s has no heading %q", name, h[1]))
				}
				if p.test {
					held[name+"#"+heading] = true
				}
			}
		}
		if p.comment && promise.MatchString(text) && !strings.Contains(text, path.Base(promises)) {
			faults = append(faults, p.faultf("%s needs its document: write %s, %q", promise.FindString(text), promises, promise.FindString(text)))
		}
	}
	for _, name := range ruled {
		for _, h := range docs[name] {
			if h.level == 3 && !held[name+"#"+h.text] {
				faults = append(faults, fmt.Sprintf("%s:%d: no test cites the rule %q", name, h.line, h.text))
			}
		}
	}
	return append(faults, deadLinks(t, tree, docs)...)
}

// heading is one of a document.
type heading struct {
	line, level int
	text        string
}

// anchor is the heading as the end of a link, as GitHub makes it.
func (h heading) anchor() string {
	var b strings.Builder
	for _, r := range strings.ToLower(h.text) {
		switch {
		case r == ' ' || r == '-':
			b.WriteByte('-')
		case r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r > 127:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// find returns the heading that is cited in full or by its label, the part
// before a colon.
func find(headings []heading, name string) string {
	for _, h := range headings {
		if h.text == name || strings.HasPrefix(h.text, name+":") {
			return h.text
		}
	}
	return ""
}

func documents(t *testing.T, tree fs.FS) map[string][]heading {
	t.Helper()
	docs := map[string][]heading{}
	for name, text := range texts(t, tree, func(name string) bool { return path.Ext(name) == ".md" }) {
		docs[name] = []heading{}
		fenced := false
		for i, line := range strings.Split(text, "\n") {
			fenced = fenced != strings.HasPrefix(strings.TrimSpace(line), "```")
			marks := len(line) - len(strings.TrimLeft(line, "#"))
			if words, ok := strings.CutPrefix(line[marks:], " "); ok && marks > 0 && !fenced {
				docs[name] = append(docs[name], heading{i + 1, marks, strings.ReplaceAll(strings.TrimSpace(words), "`", "")})
			}
		}
	}
	return docs
}

// resolve finds a document from the top of the tree or from the folder of the
// file that names it.
func resolve(docs map[string][]heading, from, name string) (string, []heading) {
	for _, full := range []string{path.Clean(name), path.Join(path.Dir(from), name)} {
		if headings, ok := docs[full]; ok {
			return full, headings
		}
	}
	return "", nil
}

// deadLinks finds links of documents whose file or heading is not there.
func deadLinks(t *testing.T, tree fs.FS, docs map[string][]heading) (faults []string) {
	for name, text := range texts(t, tree, func(name string) bool { return path.Ext(name) == ".md" }) {
		for i, line := range strings.Split(text, "\n") {
			for _, l := range link.FindAllStringSubmatch(line, -1) {
				if strings.Contains(l[1], ":") {
					continue // of another server, or mail
				}
				file, anchor, _ := strings.Cut(l[1], "#")
				full := name
				if file != "" {
					full = path.Join(path.Dir(name), file)
				}
				if _, err := fs.Stat(tree, full); err != nil {
					faults = append(faults, fmt.Sprintf("%s:%d: the link to %s leads nowhere", name, i+1, l[1]))
				} else if anchor != "" && !slices.ContainsFunc(docs[full], func(h heading) bool { return h.anchor() == anchor }) {
					faults = append(faults, fmt.Sprintf("%s:%d: %s has no heading #%s", name, i+1, full, anchor))
				}
			}
		}
	}
	return faults
}

// passages are all places that may cite.
func passages(t *testing.T, tree fs.FS) (all []passage) {
	t.Helper()
	for _, s := range sources(t, tree) {
		at := func(pos token.Pos) int { return s.Set.Position(pos).Line }
		for _, group := range s.Syntax.Comments {
			all = append(all, passage{s.Path, at(group.Pos()), oneLine(group.Text()), true, true, s.IsTest()})
		}
		ast.Inspect(s.Syntax, func(n ast.Node) bool {
			if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
				if text, err := strconv.Unquote(literal.Value); err == nil && withHeading.MatchString(text) {
					all = append(all, passage{s.Path, at(n.Pos()), oneLine(text), false, false, s.IsTest()})
				}
			}
			return true
		})
	}
	others := texts(t, tree, func(name string) bool {
		ext := path.Ext(name)
		return !within(name, "cmd/internal/treecheck/testdata/control") && (slices.Contains([]string{".md", ".yaml", ".yml", ".ts", ".tsx", ".css", ".txt", ".sh", ".mjs"}, ext) ||
			strings.HasPrefix(name, ".ci/") || name == "Makefile")
	})
	for name, text := range others {
		line := 1
		for _, paragraph := range strings.Split(text, "\n\n") {
			all = append(all, passage{name, line, oneLine(strings.NewReplacer("//", " ", "\n#", " ", " * ", " ").Replace(paragraph)), false, path.Ext(name) == ".md", strings.Contains(name, "testdata/")})
			line += strings.Count(paragraph, "\n") + 2
		}
	}
	return all
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
