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
var topLater = []string{"deploy", "internal"}

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
