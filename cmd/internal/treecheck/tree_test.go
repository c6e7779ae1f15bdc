package treecheck

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"
)

// module is the path of go.mod.
const module = "troupe"

// majorVersion ends the path of a package whose name is the element before.
var majorVersion = regexp.MustCompile(`^v[0-9]+$`)

// source is one Go file of the tree.
type source struct {
	Path   string // from the top, with slashes
	Lines  int
	Syntax *ast.File
	Set    *token.FileSet
}

// Folder is where the file stands, "." for the top.
func (s *source) Folder() string { return path.Dir(s.Path) }

// Layer is the first element of the path.
func (s *source) Layer() string {
	layer, _, _ := strings.Cut(s.Path, "/")
	return layer
}

// IsTest reports whether only tests are built from the file.
func (s *source) IsTest() bool { return strings.HasSuffix(s.Path, "_test.go") }

func (s *source) faultf(at token.Pos, format string, args ...any) string {
	return fmt.Sprintf("%s:%d: %s", s.Path, s.Set.Position(at).Line, fmt.Sprintf(format, args...))
}

// Imports visits the imports with the name that the file uses for each.
func (s *source) Imports(visit func(at token.Pos, name, importPath string)) {
	for _, spec := range s.Syntax.Imports {
		importPath, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue // the parser has checked it
		}
		name := path.Base(importPath)
		if majorVersion.MatchString(name) {
			name = path.Base(path.Dir(importPath))
		}
		if spec.Name != nil {
			name = spec.Name.Name
		}
		visit(spec.Pos(), name, importPath)
	}
}

// Uses visits every "package.Name" of the file as import path and name.
func (s *source) Uses(visit func(at token.Pos, importPath, name string)) {
	paths := map[string]string{}
	s.Imports(func(_ token.Pos, name, importPath string) { paths[name] = importPath })
	ast.Inspect(s.Syntax, func(n ast.Node) bool {
		selector, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		// NB: Obj is set when a variable of that name hides the package.
		if base, ok := selector.X.(*ast.Ident); ok && base.Obj == nil && paths[base.Name] != "" {
			visit(selector.Pos(), paths[base.Name], selector.Sel.Name)
		}
		return true
	})
}

// sources reads all Go files of a tree, except those in testdata, in hidden
// folders and in what npm installs, in the order of their paths.
func sources(t *testing.T, tree fs.FS) []*source {
	t.Helper()
	read := func() ([]*source, error) { return parse(tree) }
	if tree == whole {
		read = parseWhole
	}
	all, err := read()
	require.NoError(t, err, "read the tree")
	return all
}

// whole is the tree that this test stands in. It is large: its files are parsed once.
var (
	whole      = os.DirFS("../../..")
	parseWhole = sync.OnceValues(func() ([]*source, error) { return parse(whole) })
)

func parse(tree fs.FS) (all []*source, err error) {
	files, err := read(tree, func(name string) bool {
		hidden := strings.HasPrefix(name, ".") || strings.Contains(name, "/.") || strings.Contains("/"+name, "/testdata/")
		return path.Ext(name) == ".go" && !hidden
	})
	if err != nil {
		return nil, err
	}
	set := token.NewFileSet()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		syntax, err := parser.ParseFile(set, name, files[name], parser.ParseComments)
		if err != nil {
			return nil, err
		}
		all = append(all, &source{Path: name, Lines: strings.Count(files[name], "\n"), Syntax: syntax, Set: set})
	}
	return all, nil
}

// texts reads all files that are wanted, except in git's folder and in what npm
// installs or makes.
func texts(t *testing.T, tree fs.FS, wanted func(name string) bool) map[string]string {
	t.Helper()
	all, err := read(tree, wanted)
	require.NoError(t, err, "read the tree")
	return all
}

func read(tree fs.FS, wanted func(name string) bool) (map[string]string, error) {
	all := map[string]string{}
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == ".git" || entry.Name() == "node_modules"):
			return fs.SkipDir
		case entry.IsDir() || !wanted(name):
			return nil
		}
		text, err := fs.ReadFile(tree, name)
		all[name] = string(text)
		return err
	})
	return all, err
}

func top(t *testing.T) fs.FS {
	t.Helper()
	_, err := fs.Stat(whole, "go.mod")
	require.NoError(t, err, "the top of the tree is not where")
	return whole
}

// check is one rule about the tree.
type check func(t *testing.T, tree fs.FS) []string

// holds demands that the tree keeps the rule.
func holds(t *testing.T, rule check) {
	t.Helper()
	for _, fault := range rule(t, top(t)) {
		t.Error(fault)
	}
}

// TestControls plays testdata/control, which has a file for each rule: the answer to "plant" is what the rule finds in a small
// tree that breaks it, or keeps it. "// x 79" stands for so many lines.
func TestControls(t *testing.T) {
	rules := map[string]check{
		"arrows": checkArrows, "circles": checkCircles, "citations": checkCitations, "dependencies": checkDependencies,
		"libraries": checkLibraries, "logged-times": checkLoggedTimes, "named-tests": checkNamedTests, "packages": checkPackages,
		"pebble": checkPebbleStaysInside, "pure": checkPure, "seeds": checkSeeds, "sizes": checkSizes, "top": checkTop, "words": checkWords(),
	}
	for name, rule := range rules {
		t.Run(name, func(t *testing.T) {
			datadriven.RunTest(t, "testdata/control/"+name+".txt", func(t *testing.T, cmd *datadriven.TestData) string {
				found := rule(t, plant(cmd.Input+"\n"))
				slices.Sort(found)
				return strings.Join(found, "\n")
			})
		})
	}
}

var (
	plantedFile = regexp.MustCompile(`(?m)^-- (\S+) --\n`)
	manyLines   = regexp.MustCompile(`(?m)^// x (\d+)$`)
)

func plant(text string) fs.FS {
	tree := fstest.MapFS{}
	names := plantedFile.FindAllStringSubmatch(text, -1)
	for i, file := range plantedFile.Split(text, -1)[1:] {
		file = manyLines.ReplaceAllStringFunc(file, func(lines string) string {
			n, _ := strconv.Atoi(lines[len("// x "):])
			return strings.TrimSuffix(strings.Repeat("// x\n", n), "\n")
		})
		tree[names[i][1]] = &fstest.MapFile{Data: []byte(file)}
	}
	return tree
}
