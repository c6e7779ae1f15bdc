package treecheck

import (
	"go/ast"
	"go/token"
	"io/fs"
	"slices"
	"strings"
	"testing"
)

func TestLoggedTimesHaveAUnit(t *testing.T) { holds(t, checkLoggedTimes) }

// checkLoggedTimes demands the unit in the key of each time span in a log line: zerolog writes
// the number of milliseconds.
func checkLoggedTimes(t *testing.T, tree fs.FS) (faults []string) {
	for _, s := range sources(t, tree) {
		ast.Inspect(s.Syntax, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) != 2 {
				return true
			}
			method, ok := call.Fun.(*ast.SelectorExpr)
			key, isText := call.Args[0].(*ast.BasicLit)
			if ok && isText && method.Sel.Name == "Dur" && !strings.HasSuffix(key.Value, `Ms"`) {
				faults = append(faults, s.faultf(call.Pos(), "the key %s does not say that it is milliseconds: end it with Ms", key.Value))
			}
			return true
		})
	}
	return faults
}

// impure lists what non-test code of statemachine must not use, so that a step
// gives the same bytes whenever and wherever it is replayed.
var impure = []struct {
	importPath string
	names      []string // nil: the whole package
}{
	{"os", nil},
	{"net", nil},
	{"math/rand", nil},
	{"crypto/rand", nil},
	{"log", nil},
	{"github.com/rs/zerolog", nil},
	{"syscall", nil},
	{"plugin", nil},
	{"testing", nil},
	{"runtime", []string{"GOMAXPROCS", "Gosched", "NumGoroutine", "ReadMemStats"}},
	{"time", []string{"Now", "Since", "Until", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick", "Local", "LoadLocation"}},
}

// pureBelow are packages below an impure one that only compute.
var pureBelow = []string{"net/url", "net/netip", "net/mail"}

func TestStatemachineIsPure(t *testing.T) { holds(t, checkPure) }

func checkPure(t *testing.T, tree fs.FS) (faults []string) {
	for _, s := range sources(t, tree) {
		if s.Layer() != "statemachine" || s.IsTest() || s.Folder() == "statemachine/schematest" || s.Folder() == "statemachine/cputest" { // only tests use those
			continue
		}
		s.Imports(func(at token.Pos, _, importPath string) {
			for _, i := range impure {
				if i.names == nil && within(importPath, i.importPath) && !slices.Contains(pureBelow, importPath) {
					faults = append(faults, s.faultf(at, "statemachine must not import %s: it has no clock, disk, network, log or chance", importPath))
				}
			}
		})
		s.Uses(func(at token.Pos, importPath, name string) {
			for _, i := range impure {
				if importPath == i.importPath && slices.Contains(i.names, name) {
					faults = append(faults, s.faultf(at, "statemachine must not use %s.%s: time comes in as a value", importPath, name))
				}
			}
		})
		ast.Inspect(s.Syntax, func(n ast.Node) bool {
			if g, ok := n.(*ast.GoStmt); ok {
				faults = append(faults, s.faultf(g.Pos(), "statemachine must not start a goroutine: whoever calls it owns those"))
			}
			return true
		})
	}
	return faults
}
