package treecheck

import (
	"go/ast"
	"io/fs"
	"regexp"
	"strings"
	"testing"
)

// namedTest is the name of a test, a benchmark or a fuzz target in a text. With an
// ellipsis behind it, it is the begin of several.
var namedTest = regexp.MustCompile(`\b(?:Test|Benchmark|Fuzz)[A-Z]\w*…?`)

func TestNamedTests(t *testing.T) { holds(t, checkNamedTests) }

// checkNamedTests demands that every test that a document or a comment names is there.
func checkNamedTests(t *testing.T, tree fs.FS) (faults []string) {
	there := map[string]bool{}
	for _, s := range sources(t, tree) {
		for _, d := range s.Syntax.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && s.IsTest() {
				for i := range f.Name.Name {
					there[f.Name.Name[:i+1]+"…"] = true
				}
				there[f.Name.Name] = true
			}
		}
	}
	for _, p := range passages(t, tree) {
		if !p.prose || strings.HasPrefix(p.path, "bench/results/") {
			continue // records say what there was
		}
		for _, name := range namedTest.FindAllString(p.text, -1) {
			if !there[name] {
				faults = append(faults, p.faultf("there is no %s", name))
			}
		}
	}
	return faults
}
