package treecheck

import (
	"fmt"
	"go/ast"
	"go/types"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
)

// circleLinesMax bounds files of one package that use each other in a circle: whoever
// reads one of them has to read them all.
const circleLinesMax = 2000

func TestCircles(t *testing.T) { holds(t, checkCircles) }

// checkCircles bounds the largest circle among the files of each package, without tests. A
// file leads to another when it uses a name, a field or a method that the other declares.
func checkCircles(t *testing.T, tree fs.FS) (faults []string) {
	packages := map[string][]*source{}
	lines := map[string]int{} // of packages and files
	for _, s := range sources(t, tree) {
		if !s.IsTest() {
			packages[s.Folder()] = append(packages[s.Folder()], s)
			lines[s.Folder()] += s.Lines
			lines[s.Path] = s.Lines
		}
	}
	for folder, uses := range usesOf(packages, func(folder string) bool { return lines[folder] > circleLinesMax }) {
		for _, circle := range circles(uses) {
			sum := 0
			for _, file := range circle {
				sum += lines[path.Join(folder, file)]
			}
			if sum > circleLinesMax {
				faults = append(faults, fmt.Sprintf("%s: %d lines are more than %d: %d files use each other in a circle: %s", folder, sum, circleLinesMax, len(circle), strings.Join(circle, " ")))
			}
		}
	}
	return faults
}

// usesOf finds for each file of the wanted packages which files of its package it leads to.
func usesOf(packages map[string][]*source, wanted func(folder string) bool) map[string]map[string][]string {
	var mu sync.Mutex
	var all sync.WaitGroup
	found := map[string]map[string][]string{}
	for folder, files := range packages {
		if wanted(folder) {
			all.Go(func() {
				uses := fileUses(files)
				mu.Lock()
				defer mu.Unlock()
				found[folder] = uses
			})
		}
	}
	all.Wait()
	return found
}

func fileUses(files []*source) map[string][]string {
	var syntax []*ast.File
	uses := map[string][]string{}
	for _, s := range files {
		syntax = append(syntax, s.Syntax)
		uses[path.Base(s.Path)] = nil
	}
	info := types.Info{Uses: map[*ast.Ident]types.Object{}}
	// Other packages are taken for empty ones, so many names are not resolved: those of
	// this package are.
	config := types.Config{Importer: empty{}, Error: func(error) {}}
	pkg, _ := config.Check(files[0].Folder(), files[0].Set, syntax, &info)
	for name, object := range info.Uses {
		if object.Pkg() != pkg || !object.Pos().IsValid() || object.Parent() != nil && object.Parent() != pkg.Scope() {
			continue // of another package or of a function
		}
		from, to := files[0].Set.File(name.Pos()).Name(), files[0].Set.File(object.Pos()).Name()
		if from, to = path.Base(from), path.Base(to); from != to && !slices.Contains(uses[from], to) {
			uses[from] = append(uses[from], to)
		}
	}
	return uses
}

// empty imports every package as one without names.
type empty struct{}

func (empty) Import(importPath string) (*types.Package, error) {
	pkg := types.NewPackage(importPath, path.Base(importPath))
	pkg.MarkComplete()
	return pkg, nil
}

// circles divides a graph into the sets of nodes that lead to each other (Tarjan's
// algorithm), each in order. A node that is in no circle is a set of its own.
func circles(leadsTo map[string][]string) (all [][]string) {
	number, lowest := map[string]int{}, map[string]int{}
	var open []string // nodes of sets that are not complete
	var visit func(node string)
	visit = func(node string) {
		number[node] = len(number) + 1
		lowest[node] = number[node]
		open = append(open, node)
		for _, next := range leadsTo[node] {
			if number[next] == 0 {
				visit(next)
				lowest[node] = min(lowest[node], lowest[next])
			} else if slices.Contains(open, next) {
				lowest[node] = min(lowest[node], number[next])
			}
		}
		if lowest[node] == number[node] {
			first := slices.Index(open, node)
			all = append(all, slices.Sorted(slices.Values(open[first:])))
			open = open[:first]
		}
	}
	for _, node := range slices.Sorted(maps.Keys(leadsTo)) {
		if number[node] == 0 {
			visit(node)
		}
	}
	return all
}
