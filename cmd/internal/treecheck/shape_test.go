package treecheck

import (
	"fmt"
	"go/ast"
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"
)

const (
	fileLinesMax     = 500
	testLinesMax     = 800 // of a file of tests
	functionLinesMax = 80
	packageLinesMax  = 3200 // without tests
)

// emptyNames say nothing about what is in a package.
var emptyNames = []string{
	"util", "utils", "common", "base", "helper", "helpers", "type", "types", "model", "models",
	"manager", "managers", "impl", "misc", "shared", "lib",
}

func TestPackages(t *testing.T) { holds(t, checkPackages) }

// checkPackages demands a comment and a telling name of every package.
func checkPackages(t *testing.T, tree fs.FS) (faults []string) {
	commented := map[string]bool{}
	names := map[string]string{}
	for _, s := range sources(t, tree) {
		folder, name := s.Folder(), strings.TrimSuffix(s.Syntax.Name.Name, "_test")
		if slices.Contains(emptyNames, name) || slices.Contains(emptyNames, path.Base(folder)) {
			faults = append(faults, s.faultf(s.Syntax.Package, "the package name %q says nothing: name it for what it holds", name))
		}
		names[folder] = name
		comment := s.Syntax.Doc.Text()
		switch {
		case s.IsTest() || comment == "":
		case name != "main" && !strings.HasPrefix(comment, "Package "+name+" "):
			faults = append(faults, s.faultf(s.Syntax.Package, "the package comment must start with %q", "Package "+name))
		default:
			commented[folder] = true
		}
	}
	for folder, name := range names {
		if !commented[folder] {
			faults = append(faults, fmt.Sprintf("%s: package %s has no package comment that says what it is for", folder, name))
		}
	}
	return faults
}

func TestSizes(t *testing.T) { holds(t, checkSizes) }

// checkSizes bounds packages, files, and functions outside tests. Generated files are
// exempt, but for the sum of their package.
func checkSizes(t *testing.T, tree fs.FS) (faults []string) {
	lines := map[string]int{} // of each package, without tests
	for _, s := range sources(t, tree) {
		if !s.IsTest() {
			lines[s.Folder()] += s.Lines
		}
		if !ast.IsGenerated(s.Syntax) {
			faults = append(faults, checkFileSize(s)...)
		}
	}
	for folder, n := range lines {
		if n > packageLinesMax {
			faults = append(faults, fmt.Sprintf("%s: %d lines are more than %d: what is a subject of its own leaves it", folder, n, packageLinesMax))
		}
	}
	return faults
}

func checkFileSize(s *source) (faults []string) {
	most := fileLinesMax
	if s.IsTest() {
		most = testLinesMax
	}
	if s.Lines > most {
		faults = append(faults, fmt.Sprintf("%s: %d lines are more than %d: it answers more than one question", s.Path, s.Lines, most))
	}
	if s.IsTest() {
		return faults
	}
	for _, d := range s.Syntax.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		if lines := s.Set.Position(f.End()).Line - s.Set.Position(f.Pos()).Line + 1; lines > functionLinesMax {
			faults = append(faults, s.faultf(f.Pos(), "%s has %d lines, more than %d: it does more than one thing", f.Name.Name, lines, functionLinesMax))
		}
	}
	return faults
}
