package treecheck

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// topEntries are all that stand at the top of the tree: the parts of the
// product, and files that tools look for there.
var topEntries = []string{
	"actors", "bench", "cmd", "gateway", "persistence", "statemachine",
	"README.md", "go.mod", "go.sum",
	".ci", ".editorconfig", ".gitignore", ".golangci.yml", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile", "NOTICE", "SECURITY.md",
}

// topLater may come; until then nobody misses them.
var topLater = []string{"deploy"}

func TestTop(t *testing.T) { holds(t, checkTop) }

// checkTop demands exactly those entries. What .gitignore names at the top, for
// example a home folder made by trying the program, is no part of the tree.
func checkTop(t *testing.T, tree fs.FS) (faults []string) {
	entries, err := fs.ReadDir(tree, ".")
	require.NoError(t, err)
	ignored := ignoredAtTop(tree)
	missing := slices.Clone(topEntries)
	for _, entry := range entries {
		name := entry.Name()
		missing = slices.DeleteFunc(missing, func(m string) bool { return m == name })
		if !slices.Contains(slices.Concat(topEntries, topLater, ignored), name) {
			faults = append(faults, fmt.Sprintf("%s does not belong at the top of the tree", name))
		}
	}
	for _, name := range missing {
		faults = append(faults, fmt.Sprintf("%s is missing at the top of the tree", name))
	}
	return faults
}

// ignoredAtTop reads the lines of .gitignore that start with a slash and hold
// one plain name. Git's own folder is always there.
func ignoredAtTop(tree fs.FS) []string {
	names := []string{".git"}
	text, _ := fs.ReadFile(tree, ".gitignore") // if missing, checkTop says so
	for line := range strings.Lines(string(text)) {
		if name, atTop := strings.CutPrefix(strings.TrimSpace(line), "/"); atTop {
			names = append(names, strings.TrimSuffix(name, "/"))
		}
	}
	return names
}

func TestTopControl(t *testing.T) {
	whole := func(change func(tree map[string]string)) map[string]string {
		tree := map[string]string{}
		for _, name := range topEntries {
			tree[name] = ""
		}
		for _, folder := range []string{"actors", "bench", "cmd", "gateway", "persistence", "statemachine", ".ci"} {
			delete(tree, folder)
			tree[folder+"/a"] = ""
		}
		tree[".gitignore"] = "/troupe-home/\n*.test\n"
		change(tree)
		return tree
	}
	catches(t, checkTop, []planted{
		{"whole", whole(func(map[string]string) {}), nil},
		{"with git and an ignored folder", whole(func(tree map[string]string) { tree[".git/HEAD"], tree["troupe-home/a"] = "", "" }), nil},
		{"with what may come", whole(func(tree map[string]string) { tree["deploy/a"] = "" }), nil},
		{"a stray file", whole(func(tree map[string]string) { tree["notes.txt"] = "" }), []string{"notes.txt does not belong"}},
		{"a stray folder", whole(func(tree map[string]string) { tree["internal/a/a.go"] = "" }), []string{"internal does not belong"}},
		{"without a licence", whole(func(tree map[string]string) { delete(tree, "LICENSE") }), []string{"LICENSE is missing"}},
	})
}

func TestDependenciesAreExplained(t *testing.T) { holds(t, checkDependencies) }

// checkDependencies demands that each direct dependency of go.mod is named in a
// file of decisions, which says what it does for us.
func checkDependencies(t *testing.T, tree fs.FS) (faults []string) {
	designs := texts(t, tree, func(name string) bool { return path.Base(name) == "DESIGN.md" })
	explained := strings.Join(slices.Collect(maps.Values(designs)), "\n")
	text, err := fs.ReadFile(tree, "go.mod")
	require.NoError(t, err)
	for _, dependency := range directDependencies(string(text)) {
		name := strings.TrimPrefix(dependency, "github.com/")
		if majorVersion.MatchString(path.Base(name)) {
			name = path.Dir(name)
		}
		if !strings.Contains(explained, name) {
			faults = append(faults, fmt.Sprintf("go.mod: no DESIGN.md says what %s does for us", dependency))
		}
	}
	return faults
}

func directDependencies(gomod string) (paths []string) {
	block := false
	for line := range strings.Lines(gomod) {
		line = strings.TrimSpace(line)
		switch line {
		case "require (":
			block = true
			continue
		case ")":
			block = false
		}
		one, single := strings.CutPrefix(line, "require ")
		if (!block && !single) || strings.HasSuffix(line, "// indirect") {
			continue
		}
		if fields := strings.Fields(one); len(fields) >= 2 {
			paths = append(paths, fields[0])
		}
	}
	return paths
}

func TestDependenciesAreExplainedControl(t *testing.T) {
	catches(t, checkDependencies, []planted{
		{"explained", map[string]string{"go.mod": "require (\n\tgithub.com/a/b v1.0.0\n)\n", "x/DESIGN.md": "| a/b | does it |"}, nil},
		{"indirect", map[string]string{"go.mod": "require github.com/a/b v1.0.0 // indirect\n"}, nil},
		{"explained without its major version", map[string]string{"go.mod": "require github.com/a/b/v2 v2.0.0\n", "DESIGN.md": "a/b does it"}, nil},
		{"in a block", map[string]string{"go.mod": "require (\n\tgithub.com/a/b v1.0.0\n)\n"}, []string{"a/b"}},
		{"alone", map[string]string{"go.mod": "require example.org/c v1.0.0\n"}, []string{"example.org/c"}},
	})
}
