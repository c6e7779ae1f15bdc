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
	fileLinesMax     = 800
	functionLinesMax = 80
)

// packageLinesMax bounds the lines without tests of packages that have grown
// beyond one subject before. What happens by itself came to instances after 2,650, children among it, and migration;
// a deletion is one more request, whose rows are in package deletion; tasks are four requests, whose rows and lists are in packages task and activity;
// 40 lines give commits their row in the feed of changes and histories their second order;
// forms of tasks are three requests more, which share submissions and drafts with forms of instances;
// steps that fail for their callers are noted, in package incident;
// 40 lines have its goroutines go on after a panic, give schedules a quota, and slow down loops, whose counts are in package pace, and stop trees.
var packageLinesMax = map[string]int{"actors/workflow": 4374}

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

// checkSizes bounds files, and functions outside tests. Generated files are
// exempt.
func checkSizes(t *testing.T, tree fs.FS) (faults []string) {
	lines := map[string]int{} // of each package, without tests
	for _, s := range sources(t, tree) {
		if !s.IsTest() {
			lines[s.Folder()] += s.Lines
		}
		if ast.IsGenerated(s.Syntax) {
			continue
		}
		if s.Lines > fileLinesMax {
			faults = append(faults, fmt.Sprintf("%s: %d lines are more than %d: it answers more than one question", s.Path, s.Lines, fileLinesMax))
		}
		if s.IsTest() {
			continue
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
	}
	for folder, most := range packageLinesMax {
		if lines[folder] > most {
			faults = append(faults, fmt.Sprintf("%s: %d lines are more than %d: what is a subject of its own leaves it", folder, lines[folder], most))
		}
	}
	return faults
}

func TestSizesControl(t *testing.T) {
	long := func(lines int) string { return strings.Repeat("// x\n", lines) }
	catches(t, checkSizes, []planted{
		{"just right", map[string]string{"gateway/a.go": "package a\n" + long(fileLinesMax-1)}, nil},
		{"a line too many", map[string]string{"gateway/a.go": "package a\n" + long(fileLinesMax)}, []string{"801 lines"}},
		{"a test too long", map[string]string{"gateway/a_test.go": "package a\n" + long(fileLinesMax)}, []string{"801 lines"}},
		{"a package with its tests", map[string]string{
			"actors/workflow/a.go": "package a\n" + long(700), "actors/workflow/b.go": "package a\n" + long(700), "actors/workflow/c.go": "package a\n" + long(700),
			"actors/workflow/d_test.go": "package a\n" + long(700),
		}, nil},
		{"a package too long", map[string]string{
			"actors/workflow/a.go": "package a\n" + long(715), "actors/workflow/b.go": "package a\n" + long(715), "actors/workflow/c.go": "package a\n" + long(715),
			"actors/workflow/d.go": "package a\n" + long(715), "actors/workflow/e.go": "package a\n" + long(776),
			"actors/workflow/f.go": "package a\n" + long(733),
		}, []string{"actors/workflow: 4375 lines"}},
		{"generated", map[string]string{"gateway/a.go": "// Code generated by x. DO NOT EDIT.\n\npackage a\n" + long(900)}, nil},
		{"a function too long", map[string]string{"gateway/a.go": "package a\nfunc f() {\n" + long(functionLinesMax-1) + "}\n"}, []string{"f has 81 lines"}},
		{"a long function of a test", map[string]string{"gateway/a_test.go": "package a\nfunc f() {\n" + long(functionLinesMax-1) + "}\n"}, nil},
	})
}
