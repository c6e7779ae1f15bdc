package treecheck

import (
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"
)

// arrows says which folders of the top a folder may import besides itself. Each
// arrow points down: a layer never knows who uses it.
var arrows = map[string][]string{
	"statemachine": {}, // pure: definition, instance and event in; new instance out
	"persistence":  {}, // bytes under keys: it knows no rule of workflows
	"actors":       {"statemachine", "persistence"},
	"gateway":      {"actors", "statemachine", "persistence"},
	"bench":        {"gateway", "actors", "statemachine", "persistence"},
	"cmd":          {"bench", "gateway", "actors", "statemachine", "persistence"},
}

// innerArrows says which packages of actors a package of actors may import besides
// those of its own folder. "." is actors itself.
var innerArrows = map[string][]string{
	".":                   {"internal/mailbox"},
	"cluster":             {"guard", "cluster/peer", "failure"},
	"cluster/peer":        {"guard"},
	"failure":             {},
	"guard":               {},
	"logtest":             {},
	"identity":            {"guard", "failure", "internal/rounds"},
	"internal/retry":      {"failure"},
	"internal/grace":      {},
	"internal/breaks":     {},
	"internal/history":    {"internal/breaks"},
	"internal/instanceid": {},
	"internal/mailbox":    {},
	"internal/rounds":     {},
	"internal/semaphore":  {"identity"},
	"internal/backfill":   {"catalog", "failure"},
	"internal/supervise":  {".", "failure", "identity", "internal/semaphore"},
	"quota":               {"failure", "identity"},
	"catalog":             {"failure", "identity", "internal/grace"},
	"query":               {"catalog", "failure", "identity", "internal/history", "internal/instanceid", "internal/rounds", "internal/semaphore"},
	"changefeed":          {"query", "catalog", "failure", "identity", "internal/history", "internal/instanceid"},
	"watch":               {"changefeed", "query", "catalog", "failure", "identity", "internal/history", "internal/instanceid"},
	"form":                {"query", "catalog", "failure", "identity", "internal/backfill", "internal/history", "internal/instanceid"},
	"timer":               {"guard", "failure", "internal/instanceid"},
	"incident":            {"guard", "failure", "internal/instanceid"},
	"child":               {"internal/instanceid"},
	"invoke":              {"child", "incident", "catalog", "failure", "identity", "internal/breaks", "internal/instanceid"},
	"outbox":              {"guard", "child", "failure", "internal/instanceid", "internal/semaphore"},
	"schedule":            {"guard", "catalog", "failure", "identity", "internal/semaphore"},
	"deletion":            {"task", "catalog", "form", "outbox", "timer", "failure"},
	"pending":             {"incident", "timer", "outbox", "catalog", "query", "failure", "identity", "internal/instanceid"},
	"task":                {"catalog", "query", "failure", "identity", "internal/backfill", "internal/history", "internal/instanceid"},
	"activity":            {"pending", "query", "failure", "internal/history", "internal/instanceid"},
	"workflow":            {"guard", ".", "deletion", "incident", "task", "activity", "child", "invoke", "schedule", "timer", "outbox", "pending", "watch", "changefeed", "form", "query", "catalog", "quota", "failure", "identity", "logtest", "internal/backfill", "internal/breaks", "internal/grace", "internal/retry", "internal/history", "internal/instanceid"},
	"presentation":        {"workflow", "form", "task", "catalog", "query", "failure", "identity", "internal/history", "internal/instanceid"},
	"migration":           {"guard", "pending", "workflow", "catalog", "query", "failure", "identity"},
	"formportal":          {".", "workflow", "task", "form", "catalog", "failure", "identity", "internal/supervise"},
	"repository":          {"guard", ".", "failure", "identity", "internal/supervise"},
	"template":            {".", "repository", "failure", "identity", "internal/semaphore", "internal/supervise"},
	"home":                {"guard", "failure", "internal/breaks", "internal/semaphore", "formportal", "form", "catalog", "repository", "identity"},
	"actorstest":          {".", "cluster", "cluster/peer", "failure", "form", "home", "template", "formportal", "repository", "presentation", "workflow", "migration", "catalog", "identity"},
}

// homes says where a library, or an inner package of ours, may be imported. A library that stays in one place
// can be replaced in one place.
var homes = []struct {
	library string // the path or the start of it
	folders []string
	why     string
}{
	{"github.com/julienschmidt/httprouter", []string{"gateway", "bench"}, "HTTP ends in gateway; bench measures the bare router"},
	{"github.com/asynkron/protoactor-go", []string{"actors"}, "actors are an inside of actors"},
	// persistence/PROMISES.md, "F10": the plugin reports no error of a write.
	{"github.com/asynkron/protoactor-go/persistence", []string{}, "the journal is persistence.Store"},
	{"github.com/cockroachdb/pebble", []string{"persistence", "bench"}, "keys and bytes end in persistence; bench measures the bare store"},
	{"troupe/persistence/integrity", []string{"persistence"}, "whoever asks about damage asks the store"},
	{"github.com/hashicorp/raft", []string{"persistence"}, "the journal is the seam for the cluster"},
	{"cel.dev/cel-go", []string{"statemachine"}, "expressions are a part of definitions"},
	{"github.com/google/cel-go", []string{}, "its path moved to cel.dev/cel-go"},
	{"github.com/santhosh-tekuri/jsonschema", []string{"statemachine", "cmd/troupe/version_test.go"}, "schemas are a part of definitions; the bill of materials has one of its own"},
	{"go.yaml.in/yaml", []string{"statemachine/document"}, "one reader of text files, so that all faults have lines"},
	{"gopkg.in/yaml", []string{}, "one YAML library is enough"},
	{"github.com/goccy/go-yaml", []string{}, "one YAML library is enough"},
	{"github.com/knadh/koanf", []string{"cmd/troupe"}, "one reader of settings"},
	{"github.com/spf13", []string{"cmd/troupe"}, "the command line ends in cmd"},
	{"github.com/getkin/kin-openapi", []string{"gateway/harness_openapi_test.go", "gateway/openapi_test.go", "gateway/openapi_serve_test.go"}, "tests hold exchanges against the document; the program does not need it"},
	{"github.com/wneessen/go-mail", []string{"actors/outbox"}, "mails leave through the outbox"},
	{"github.com/emersion", []string{"actors/outbox/mail_test.go", "cmd/internal/receiver"}, "tests and the receiver have a server that takes mails; the program needs none"},
	{"github.com/robfig/cron", []string{"statemachine/cron"}, "its reader of expressions is used, and not its clock"},
	{"github.com/rs/zerolog/log", []string{}, "loggers are injected, never global"},
	{"unsafe", []string{}, "nothing here is worth it"},
}

func TestArrows(t *testing.T) { holds(t, checkArrows) }

func checkArrows(t *testing.T, tree fs.FS) (faults []string) {
	for _, s := range sources(t, tree) {
		allowed, known := arrows[s.Layer()]
		if !known {
			faults = append(faults, s.faultf(s.Syntax.Package, "no arrow is drawn for the folder %q", s.Layer()))
			continue
		}
		s.Imports(func(at token.Pos, _, importPath string) {
			inside, ours := strings.CutPrefix(importPath, module+"/")
			if !ours {
				return
			}
			layer, _, _ := strings.Cut(inside, "/")
			if layer != s.Layer() && !slices.Contains(allowed, layer) {
				faults = append(faults, s.faultf(at, "%s must not import %s: the arrows are in this test", s.Layer(), importPath))
			}
		})
	}
	return faults
}

func TestArrowsControl(t *testing.T) {
	catches(t, checkArrows, []planted{
		{"down is allowed", map[string]string{"gateway/a.go": "package gateway\nimport _ \"troupe/statemachine/data\"\n"}, nil},
		{"inside is allowed", map[string]string{"actors/a.go": "package actors\nimport _ \"troupe/actors/identity\"\n"}, nil},
		{"up", map[string]string{"statemachine/expr/a.go": "package expr\nimport _ \"troupe/actors\"\n"}, []string{"statemachine/expr/a.go:2: statemachine must not import"}},
		{"aside", map[string]string{"persistence/a.go": "package persistence\nimport _ \"troupe/statemachine\"\n"}, []string{"persistence must not import"}},
		{"in a test", map[string]string{"persistence/a_test.go": "package persistence\nimport _ \"troupe/statemachine\"\n"}, []string{"persistence must not import"}},
		{"a new folder", map[string]string{"tools/a.go": "package tools\n"}, []string{"no arrow"}},
	})
}

func TestInnerArrows(t *testing.T) { holds(t, checkInnerArrows) }

func checkInnerArrows(t *testing.T, tree fs.FS) (faults []string) {
	room := func(folder string) string { // the package of the table that a folder belongs to
		for name := folder; ; name = path.Dir(name) {
			if _, drawn := innerArrows[name]; drawn && (name != "." || folder == ".") || name == "." {
				return name
			}
		}
	}
	for _, s := range sources(t, tree) {
		folder, inside := strings.CutPrefix(s.Folder()+"/", "actors/")
		if !inside || s.IsTest() {
			continue
		}
		folder = path.Clean(folder)
		from := room(folder)
		if from == "." && folder != "." {
			faults = append(faults, s.faultf(s.Syntax.Package, "no inner arrow is drawn for the folder %q", folder))
			continue
		}
		s.Imports(func(at token.Pos, _, importPath string) {
			target, ours := strings.CutPrefix(importPath+"/", module+"/actors/")
			if !ours {
				return
			}
			to := room(path.Clean(target))
			if to != from && !slices.Contains(innerArrows[from], to) {
				faults = append(faults, s.faultf(at, "actors/%s must not import %s: the inner arrows are in this test", folder, importPath))
			}
		})
	}
	return faults
}

func TestInnerArrowsControl(t *testing.T) {
	catches(t, checkInnerArrows, []planted{
		{"down is allowed", map[string]string{"actors/query/a.go": "package query\nimport _ \"troupe/actors/catalog\"\n"}, nil},
		{"within a folder is allowed", map[string]string{"actors/template/rml/a.go": "package rml\nimport _ \"troupe/actors/template/param\"\n"}, nil},
		{"up", map[string]string{"actors/query/a.go": "package query\nimport _ \"troupe/actors/workflow\"\n"}, []string{"actors/query/a.go:2: actors/query must not import"}},
		{"up from below a folder", map[string]string{"actors/repository/disk/a.go": "package disk\nimport _ \"troupe/actors/template\"\n"}, []string{"actors/repository/disk must not import"}},
		{"a leaf that imports the actors", map[string]string{"actors/failure/a.go": "package failure\nimport _ \"troupe/actors\"\n"}, []string{"actors/failure must not import"}},
		{"a test may", map[string]string{"actors/query/a_test.go": "package query_test\nimport _ \"troupe/actors/workflow\"\n"}, nil},
		{"a new folder", map[string]string{"actors/tools/a.go": "package tools\n"}, []string{"no inner arrow"}},
		{"elsewhere", map[string]string{"gateway/a.go": "package gateway\nimport _ \"troupe/actors/workflow\"\n"}, nil},
	})
}

func TestHomes(t *testing.T) { holds(t, checkHomes) }

func checkHomes(t *testing.T, tree fs.FS) (faults []string) {
	for _, s := range sources(t, tree) {
		s.Imports(func(at token.Pos, _, importPath string) {
			for _, home := range homes {
				if within(importPath, home.library) && !slices.ContainsFunc(home.folders, func(f string) bool { return within(s.Path, f) }) {
					faults = append(faults, s.faultf(at, "%s may be imported only in %v: %s", importPath, home.folders, home.why))
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

func TestHomesControl(t *testing.T) {
	catches(t, checkHomes, []planted{
		{"at home", map[string]string{"persistence/a.go": "package persistence\nimport _ \"github.com/cockroachdb/pebble/v2\"\n"}, nil},
		{"a sibling of the library", map[string]string{"persistence/a.go": "package persistence\nimport _ \"github.com/rs/zerolog\"\n"}, nil},
		{"the actors' own persistence", map[string]string{"actors/a.go": "package actors\nimport _ \"github.com/asynkron/protoactor-go/persistence\"\n"}, []string{"the journal is persistence.Store"}},
		{"the router in cmd", map[string]string{"cmd/troupe/a.go": "package main\nimport _ \"github.com/julienschmidt/httprouter\"\n"}, []string{"httprouter may be imported only in [gateway"}},
		{"the store in a test of actors", map[string]string{"actors/a_test.go": "package actors\nimport _ \"github.com/cockroachdb/pebble/v2/vfs\"\n"}, []string{"pebble"}},
		{"YAML beside document", map[string]string{"statemachine/a.go": "package statemachine\nimport _ \"go.yaml.in/yaml/v4\"\n"}, []string{"yaml"}},
		{"the damage check beside the store", map[string]string{"cmd/troupe/a.go": "package main\nimport _ \"troupe/persistence/integrity\"\n"}, []string{"asks the store"}},
		{"the global logger", map[string]string{"cmd/troupe/a.go": "package main\nimport _ \"github.com/rs/zerolog/log\"\n"}, []string{"never global"}},
	})
}
