package filter

import (
	"go/ast"
	goparser "go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/statemachine/internal/markdown"
)

func readDocument(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("FILTER.md")
	require.NoError(t, err)
	return string(text)
}

func wordsOf(t *testing.T, heading string) []string {
	t.Helper()
	tables := markdown.Tables(markdown.Section(readDocument(t), heading))
	require.NotEmpty(t, tables, "no table below %q", heading)
	var words []string
	for _, row := range tables[0].Rows {
		words = append(words, row[0])
	}
	return words
}

// TestTheDocumentHasEveryOperator compares the table with the words that the package's code compares with.
func TestTheDocumentHasEveryOperator(t *testing.T) {
	word := regexp.MustCompile(`^\$[a-zA-Z]+$`)
	known := map[string]bool{}
	notTests := func(f fs.FileInfo) bool { return !strings.HasSuffix(f.Name(), "_test.go") }
	packages, err := goparser.ParseDir(token.NewFileSet(), ".", notTests, 0) //nolint:staticcheck // one folder, no build tags
	require.NoError(t, err)
	ast.Inspect(packages["filter"], func(n ast.Node) bool {
		if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			if text, err := strconv.Unquote(literal.Value); err == nil && word.MatchString(text) {
				known[text] = true
			}
		}
		return true
	})
	assert.ElementsMatch(t, wordsOf(t, "Operators"), slices.Collect(maps.Keys(known)), "operators")
}

func TestTheDocumentHasEveryRoot(t *testing.T) {
	assert.ElementsMatch(t, wordsOf(t, "Roots"), slices.Collect(maps.Keys(roots)), "roots")
}

// TestTheDocumentHasEveryType: types that JSON does not have are not listed.
func TestTheDocumentHasEveryType(t *testing.T) {
	var known []string
	for name, k := range kindNames {
		if k != kindOther && name != "number" {
			known = append(known, name)
		}
	}
	assert.ElementsMatch(t, wordsOf(t, "Numbers, types and bits"), known, "types")
	for _, row := range markdown.Tables(markdown.Section(readDocument(t), "Numbers, types and bits"))[0].Rows {
		code, err := strconv.ParseInt(row[1], 10, 64)
		if err != nil || kindCodes[code] != kindNames[row[0]] {
			t.Errorf("type %s: FILTER.md has the number %s", row[0], row[1])
		}
	}
}

func TestTheDocumentHasEveryLimit(t *testing.T) {
	var documented []string
	for _, row := range markdown.Tables(markdown.Section(readDocument(t), "Limits"))[0].Rows {
		documented = append(documented, row[1])
	}
	var known []string
	for _, n := range []int{maxBytes, maxDepth, maxDepth, maxClauses, maxPositions, maxPattern, maxSteps} {
		known = append(known, strconv.Itoa(n))
	}
	assert.ElementsMatch(t, documented, known, "limits")
}

// TestTheExamplesOfTheDocument runs every table whose header is "Filter", a root,
// "Matches", and reads the filters of "Examples".
func TestTheExamplesOfTheDocument(t *testing.T) {
	ran := 0
	for _, table := range markdown.Tables(readDocument(t)) {
		if len(table.Header) != 3 || table.Header[0] != "Filter" || table.Header[2] != "Matches" {
			continue
		}
		for _, row := range table.Rows {
			ran++
			require.Len(t, row, 3, "a row")
			value := mustClean(t, row[1])
			var d Document
			switch table.Header[1] {
			case "svcPublic":
				d.Public = value
			case "states":
				d.States = value
			default:
				t.Fatalf("a table about %q", table.Header[1])
			}
			if got := mustParse(t, row[0]).Match(d); got != (row[2] == "yes") || row[2] != "yes" && row[2] != "no" {
				t.Errorf("%s matches %s: got %v, FILTER.md says %s", row[0], row[1], got, row[2])
			}
		}
	}
	assert.GreaterOrEqual(t, ran, 80, "examples ran, want at least 80: the tables are not found")
	for _, row := range markdown.Tables(markdown.Section(readDocument(t), "Examples"))[0].Rows {
		mustParse(t, row[1])
	}
}

func TestTheFaultsOfTheDocument(t *testing.T) {
	for _, row := range markdown.Tables(markdown.Section(readDocument(t), "Faults"))[0].Rows {
		if _, err := Parse([]byte(row[0]), Options{}); err == nil || !strings.HasPrefix(err.Error(), row[1]) {
			t.Errorf("%s: got %v, FILTER.md says %s", row[0], err, row[1])
		}
	}
}
