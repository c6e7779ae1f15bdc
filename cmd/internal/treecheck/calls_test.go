package treecheck

import (
	"go/ast"
	"go/token"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// banned lists uses of other packages that we do without.
var banned = []struct {
	importPath string
	names      []string
	except     []string // folders
	why        string
}{
	{"time", []string{"Sleep"}, []string{"persistence/clocktest"}, "wait for a signal or a condition; tests move a virtual clock by persistence/clocktest"},
	{"time", []string{"Tick"}, nil, "nobody can stop it"},
	{"fmt", []string{"Print", "Printf", "Println"}, []string{examplesOnly}, "write to a writer that was passed in"},
	{"log", []string{"Print", "Printf", "Println", "Fatal", "Fatalf", "Fatalln", "Panic", "Panicf", "Panicln", "Default"}, nil, "loggers are injected, never global"},
	{"log/slog", []string{"Debug", "Info", "Warn", "Error", "Log", "Default", "SetDefault"}, nil, "loggers are injected, never global"},
	{"net/http", []string{"DefaultServeMux", "DefaultClient", "DefaultTransport", "Handle", "HandleFunc", "ListenAndServe", "ListenAndServeTLS", "Get", "Head", "Post", "PostForm"}, nil, "servers and clients have owners and limits"},
	{"os", []string{"Exit"}, []string{"cmd", "bench/main.go", "persistence"}, "only the program ends itself, or the store that cannot go on"},
	{"math/rand", []string{"*"}, nil, "use math/rand/v2, or crypto/rand for secrets"},
	{"io/ioutil", []string{"*"}, nil, "use io and os"},
	{"testing/fstest", []string{"*"}, []string{testsOnly}, "the program has no part of a test"},
	{"reflect", []string{"DeepEqual"}, []string{testsOnly}, "compare what matters"},
}

// testsOnly and examplesOnly, as folders, stand for all tests, and for those whose output go test reads.
const (
	testsOnly    = "_test.go"
	examplesOnly = "/example_test.go"
)

func TestBannedUses(t *testing.T) { holds(t, checkBannedUses) }

func checkBannedUses(t *testing.T, tree fs.FS) (faults []string) {
	for _, s := range sources(t, tree) {
		s.Uses(func(at token.Pos, importPath, name string) {
			for _, b := range banned {
				if b.importPath == importPath && (b.names[0] == "*" || slices.Contains(b.names, name)) && !excepted(s, b.except) {
					faults = append(faults, s.faultf(at, "no %s.%s here: %s", importPath, name, b.why))
				}
			}
		})
	}
	return faults
}

func excepted(s *source, folders []string) bool {
	return slices.ContainsFunc(folders, func(f string) bool {
		return f == testsOnly && s.IsTest() || f == examplesOnly && strings.HasSuffix(s.Path, f) || within(s.Path, f)
	})
}

func TestBannedUsesControl(t *testing.T) {
	catches(t, checkBannedUses, []planted{
		{"a time is fine", map[string]string{"gateway/a.go": "package a\nimport \"time\"\nvar x = time.Second\n"}, nil},
		{"a variable that hides the package", map[string]string{"gateway/a.go": "package a\nimport _ \"fmt\"\nfunc f(time interface{Sleep()}) { time.Sleep() }\n"}, nil},
		{"a sleep in a test", map[string]string{"gateway/a_test.go": "package a\nimport \"time\"\nfunc f() { time.Sleep(1) }\n"}, []string{"gateway/a_test.go:3: no time.Sleep"}},
		{"a sleep beside a virtual clock", map[string]string{"gateway/a_test.go": "package a\nimport (\n\"testing/synctest\"\n\"time\"\n)\nvar _ = synctest.Wait\nfunc f() { time.Sleep(1) }\n"}, []string{"gateway/a_test.go:7: no time.Sleep"}},
		{"the one sleep on a virtual clock", map[string]string{"persistence/clocktest/a.go": "package clocktest\nimport \"time\"\nfunc f() { time.Sleep(1) }\n"}, nil},
		{"a sleep under another name", map[string]string{"gateway/a.go": "package a\nimport clock \"time\"\nvar f = clock.Sleep\n"}, []string{"no time.Sleep"}},
		{"a print", map[string]string{"actors/a.go": "package a\nimport \"fmt\"\nfunc f() { fmt.Println() }\n"}, []string{"no fmt.Println"}},
		{"a print of an example", map[string]string{"actors/example_test.go": "package a\nimport \"fmt\"\nfunc f() { fmt.Println() }\n"}, nil},
		{"a print of another test", map[string]string{"actors/no_example_test.go": "package a\nimport \"fmt\"\nfunc f() { fmt.Println() }\n"}, []string{"no fmt.Println"}},
		{"the default mux", map[string]string{"gateway/a.go": "package a\nimport \"net/http\"\nvar x = http.DefaultServeMux\n"}, []string{"no net/http.DefaultServeMux"}},
		{"an exit outside cmd", map[string]string{"gateway/a.go": "package a\nimport \"os\"\nfunc f() { os.Exit(1) }\n"}, []string{"no os.Exit"}},
		{"an exit in cmd", map[string]string{"cmd/troupe/a.go": "package main\nimport \"os\"\nfunc f() { os.Exit(1) }\n"}, nil},
		{"the next version of a package", map[string]string{"gateway/a.go": "package a\nimport \"math/rand/v2\"\nvar x = rand.Int()\n"}, nil},
		{"anything of a package", map[string]string{"gateway/a.go": "package a\nimport \"math/rand\"\nvar x = rand.Int()\n"}, []string{"no math/rand.Int"}},
	})
}

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

func TestLoggedTimesHaveAUnitControl(t *testing.T) {
	catches(t, checkLoggedTimes, []planted{
		{"with its unit", map[string]string{"gateway/a.go": "package a\nfunc f(l *zerolog.Event) { l.Dur(\"tookMs\", 1) }\n"}, nil},
		{"without", map[string]string{"gateway/a.go": "package a\nfunc f(l *zerolog.Event) { l.Dur(\"took\", 1) }\n"}, []string{"gateway/a.go:2: the key \"took\""}},
	})
}

func TestBannedStatements(t *testing.T) { holds(t, checkBannedStatements) }

// checkBannedStatements finds init functions, dot imports and the print
// built-ins.
func checkBannedStatements(t *testing.T, tree fs.FS) (faults []string) {
	for _, s := range sources(t, tree) {
		if ast.IsGenerated(s.Syntax) {
			continue
		}
		s.Imports(func(at token.Pos, name, importPath string) {
			if name == "." {
				faults = append(faults, s.faultf(at, "no dot import of %s: a reader cannot tell what it brings", importPath))
			}
		})
		ast.Inspect(s.Syntax, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Name.Name == "init" && n.Recv == nil {
					faults = append(faults, s.faultf(n.Pos(), "no init function: whoever needs it calls it"))
				}
			case *ast.CallExpr:
				if name, ok := n.Fun.(*ast.Ident); ok && name.Obj == nil && (name.Name == "print" || name.Name == "println") {
					faults = append(faults, s.faultf(n.Pos(), "no %s: it is for bootstrapping", name.Name))
				}
			}
			return true
		})
	}
	return faults
}

func TestBannedStatementsControl(t *testing.T) {
	catches(t, checkBannedStatements, []planted{
		{"a method named init", map[string]string{"gateway/a.go": "package a\ntype T int\nfunc (T) init() {}\n"}, nil},
		{"an init function", map[string]string{"gateway/a.go": "package a\nfunc init() {}\n"}, []string{"no init function"}},
		{"a dot import", map[string]string{"gateway/a.go": "package a\nimport . \"strings\"\nvar x = ToLower(\"\")\n"}, []string{"no dot import"}},
		{"a println", map[string]string{"gateway/a.go": "package a\nfunc f() { println() }\n"}, []string{"no println"}},
	})
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

func TestStatemachineIsPureControl(t *testing.T) {
	in := func(text string) map[string]string {
		return map[string]string{"statemachine/expr/a.go": "package expr\n" + text}
	}
	catches(t, checkPure, []planted{
		{"a duration", in("import \"time\"\nvar x = time.Hour\n"), nil},
		{"a URL", in("import _ \"net/url\"\n"), nil},
		{"a file in a test", map[string]string{"statemachine/a_test.go": "package a\nimport _ \"os\"\n"}, nil},
		{"what only tests use", map[string]string{"statemachine/schematest/a.go": "package schematest\nimport _ \"testing\"\n"}, nil},
		{"a clock elsewhere", map[string]string{"actors/a.go": "package a\nimport \"time\"\nvar x = time.Now()\n"}, nil},
		{"a file", in("import _ \"os\"\n"), []string{"must not import os"}},
		{"a process", in("import _ \"os/exec\"\n"), []string{"must not import os/exec"}},
		{"the network", in("import _ \"net/http\"\n"), []string{"must not import net/http"}},
		{"a log", in("import _ \"log/slog\"\n"), []string{"must not import log/slog"}},
		{"chance", in("import _ \"math/rand/v2\"\n"), []string{"must not import math/rand/v2"}},
		{"the clock", in("import \"time\"\nvar x = time.Now()\n"), []string{"must not use time.Now"}},
		{"the clock under another name", in("import t \"time\"\nvar x = t.Since\n"), []string{"must not use time.Since"}},
		{"a goroutine", in("func f() { go f() }\n"), []string{"must not start a goroutine"}},
	})
	for _, i := range impure {
		assert.False(t, strings.HasPrefix(i.importPath, module), "%s: our own packages belong to the arrows", i.importPath)
	}
}
