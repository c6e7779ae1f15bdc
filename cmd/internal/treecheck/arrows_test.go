package treecheck

import (
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
)

// arrows is testdata/arrows.txt: for each of its headings the rows, a folder or a library with those that stand behind it.
type arrows map[string]map[string]arrow

type arrow struct {
	to  []string
	why string
}

var (
	arrowsFile  = "testdata/arrows.txt"
	drawnArrows = sync.OnceValues(func() (arrows, error) {
		text, err := os.ReadFile(arrowsFile)
		return readArrows(string(text)), err
	})
	arrowRow = regexp.MustCompile(`(?m)^(?:\[(\S+)\]|([^#\s]\S*): *([^#\n]*)(?:# (.*))?)$`)
)

func readArrows(text string) arrows {
	all, heading := arrows{}, ""
	text = strings.ReplaceAll(text, "\n    ", " ") // a long row goes on in the next line
	for _, found := range arrowRow.FindAllStringSubmatch(text, -1) {
		if found[1] != "" {
			heading = found[1]
			all[heading] = map[string]arrow{}
			continue
		}
		all[heading][found[2]] = arrow{strings.Fields(found[3]), found[4]}
	}
	return all
}

func mustArrows(t *testing.T) arrows {
	t.Helper()
	drawn, err := drawnArrows()
	if err != nil || len(drawn) < 3 {
		t.Fatalf("%s has %d headings (%v)", arrowsFile, len(drawn), err)
	}
	return drawn
}

func TestArrows(t *testing.T) { holds(t, checkArrows) }

func checkArrows(t *testing.T, tree fs.FS) (faults []string) {
	drawn := mustArrows(t)
	for _, s := range sources(t, tree) {
		layer, known := drawn["top"][s.Layer()]
		if !known {
			faults = append(faults, s.faultf(s.Syntax.Package, "no arrow is drawn for the folder %q", s.Layer()))
			continue
		}
		rows, folder := drawn[s.Layer()], below(s.Folder(), s.Layer())
		from := row(rows, folder)
		if from == "" && !s.IsTest() {
			faults = append(faults, s.faultf(s.Syntax.Package, "no inner arrow is drawn for the folder %q of %s", folder, s.Layer()))
		}
		s.Imports(func(at token.Pos, _, importPath string) {
			target, ours := strings.CutPrefix(importPath, module+"/")
			top, _, _ := strings.Cut(target, "/")
			to := row(rows, below(target, s.Layer()))
			switch {
			case !ours:
			case top != s.Layer():
				if !slices.Contains(layer.to, top) {
					faults = append(faults, s.faultf(at, "%s must not import %s: the arrows are in %s", s.Layer(), importPath, arrowsFile))
				}
			case from != "" && !s.IsTest() && to != from && !slices.Contains(rows[from].to, to):
				faults = append(faults, s.faultf(at, "%s must not import %s: the inner arrows are in %s", s.Folder(), importPath, arrowsFile))
			}
		})
	}
	return faults
}

// below is a folder as seen from a folder of the top.
func below(folder, layer string) string {
	return path.Clean(strings.TrimPrefix(strings.TrimPrefix(folder, layer), "/"))
}

// row is the name in the table that a folder belongs to, or nothing.
func row(rows map[string]arrow, folder string) string {
	for name := folder; name != "."; name = path.Dir(name) {
		if _, drawn := rows[name]; drawn {
			return name
		}
	}
	if _, drawn := rows["."]; drawn && folder == "." {
		return folder
	}
	return ""
}

func TestLibraries(t *testing.T) { holds(t, checkLibraries) }

func checkLibraries(t *testing.T, tree fs.FS) (faults []string) {
	libraries := mustArrows(t)["libraries"]
	for _, s := range sources(t, tree) {
		s.Imports(func(at token.Pos, _, importPath string) {
			for library, home := range libraries {
				if within(importPath, library) && !slices.ContainsFunc(home.to, func(f string) bool { return within(s.Path, f) }) {
					faults = append(faults, s.faultf(at, "%s may be imported only in %v: %s", importPath, home.to, home.why))
				}
			}
		})
	}
	return faults
}

// within reports whether a path is the folder or lies in it.
func within(name, folder string) bool {
	return name == folder || strings.HasPrefix(name, folder+"/")
}

func TestArrowsPointDown(t *testing.T) {
	for heading, rows := range mustArrows(t) {
		if heading == "libraries" {
			continue
		}
		for _, fault := range checkRows(rows) {
			t.Errorf("%s: %s", heading, fault)
		}
	}
}

// checkRows demands that rows name only folders that have one, and that no arrows lead back to where they came from.
func checkRows(rows map[string]arrow) (faults []string) {
	leadsTo := map[string][]string{}
	for from, a := range rows {
		leadsTo[from] = a.to
		for _, to := range a.to {
			if _, drawn := rows[to]; !drawn {
				faults = append(faults, from+" has an arrow to "+to+", which has no row")
			}
		}
	}
	for _, circle := range circles(leadsTo) {
		if len(circle) > 1 {
			faults = append(faults, "arrows lead in a circle: "+strings.Join(circle, " "))
		}
	}
	return faults
}

func TestArrowsPointDownControl(t *testing.T) {
	for rows, want := range map[string]string{
		"a: b c\nb: c\nc:\n":          "",
		"a: b\nb: c\nc:\n    a\nd: a": "arrows lead in a circle: a b c",
		"a: b # c\n":                  "a has an arrow to b, which has no row",
	} {
		assert.Equal(t, want, strings.Join(checkRows(readArrows("[x]\n" + rows)["x"]), "; "), rows)
	}
}
