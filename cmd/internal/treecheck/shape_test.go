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

func TestPackagesControl(t *testing.T) {
	catches(t, checkPackages, []planted{
		{"a comment in one of two files", map[string]string{"gateway/a.go": "package gateway\n", "gateway/b.go": "// Package gateway is HTTP.\npackage gateway\n"}, nil},
		{"a program", map[string]string{"cmd/a/a.go": "// A is a program.\npackage main\n"}, nil},
		{"no comment", map[string]string{"gateway/a.go": "package gateway\n"}, []string{"gateway: package gateway has no package comment"}},
		{"a comment only in a test", map[string]string{"gateway/a_test.go": "// Package gateway is HTTP.\npackage gateway\n"}, []string{"no package comment"}},
		{"a comment that is not one", map[string]string{"gateway/a.go": "// Copyright.\npackage gateway\n"}, []string{"must start with", "no package comment"}},
		{"a name that says nothing", map[string]string{"gateway/util/a.go": "// Package util has all.\npackage util\n"}, []string{"says nothing"}},
		{"a folder that says nothing", map[string]string{"gateway/common/a.go": "// Package x has all.\npackage x\n"}, []string{"says nothing"}},
	})
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

func TestSizesControl(t *testing.T) {
	long := func(lines int) string { return strings.Repeat("// x\n", lines) }
	files := func(sizes ...int) map[string]string {
		tree := map[string]string{}
		for i, size := range sizes {
			tree[fmt.Sprintf("actors/%c.go", 'a'+i)] = "package a\n" + long(size-1)
		}
		return tree
	}
	with := func(tree map[string]string, name, text string) map[string]string {
		tree[name] = text
		return tree
	}
	catches(t, checkSizes, []planted{
		{"just right", files(500), nil},
		{"a line too many", files(501), []string{"501 lines"}},
		{"a test just right", map[string]string{"gateway/a_test.go": "package a\n" + long(testLinesMax-1)}, nil},
		{"a test too long", map[string]string{"gateway/a_test.go": "package a\n" + long(testLinesMax)}, []string{"801 lines"}},
		{"a package just right, with its tests", with(files(500, 500, 500, 500, 500, 500, 200), "actors/a_test.go", "package a\n"+long(700)), nil},
		{"a package too long", files(500, 500, 500, 500, 500, 500, 201), []string{"actors: 3201 lines are more than 3200"}},
		{"generated", map[string]string{"gateway/a.go": "// Code generated by x. DO NOT EDIT.\n\npackage a\n" + long(900)}, nil},
		{"a function too long", map[string]string{"gateway/a.go": "package a\nfunc f() {\n" + long(functionLinesMax-1) + "}\n"}, []string{"f has 81 lines"}},
		{"a long function of a test", map[string]string{"gateway/a_test.go": "package a\nfunc f() {\n" + long(functionLinesMax-1) + "}\n"}, nil},
	})
}
