package treecheck

import (
	"go/token"
	"io/fs"
	"testing"
)

func TestSeedsAreFixed(t *testing.T) { holds(t, checkSeeds) }

// checkSeeds demands that a package that draws by rapid draws the same in each run, and that the program has no part of it.
func checkSeeds(t *testing.T, tree fs.FS) (faults []string) {
	const fixed = module + "/internal/fixedseed"
	draws, isFixed := map[string]*source{}, map[string]*source{}
	for _, s := range sources(t, tree) {
		s.Imports(func(_ token.Pos, _, importPath string) {
			switch importPath {
			case "pgregory.net/rapid":
				draws[s.Folder()] = s
			case fixed:
				isFixed[s.Folder()] = s
			}
		})
	}
	for folder, s := range draws {
		if isFixed[folder] == nil && module+"/"+folder != fixed {
			faults = append(faults, s.faultf(s.Syntax.Package, "it draws by rapid, so the package must import %s", fixed))
		}
	}
	for folder, s := range isFixed {
		if draws[folder] == nil {
			faults = append(faults, s.faultf(s.Syntax.Package, "%s is for tests that draw by rapid", fixed))
		}
	}
	return faults
}
