package treecheck

import (
	"go/token"
	"io/fs"
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
	{"github.com/knadh/koanf", []string{"cmd/internal/config"}, "one reader of settings"},
	{"github.com/spf13", []string{"cmd/troupe", "cmd/internal"}, "the command line ends in cmd"},
	{"github.com/getkin/kin-openapi", []string{"gateway/harness_openapi_test.go", "gateway/openapi_test.go"}, "tests hold exchanges against the document; the program does not need it"},
	{"github.com/wneessen/go-mail", []string{"actors/outbox"}, "mails leave through the outbox"},
	{"github.com/emersion", []string{"actors/outbox/mail_test.go", "cmd/internal/receiver"}, "tests and the receiver have a server that takes mails; the program needs none"},
	{"github.com/robfig/cron", []string{"statemachine/cron"}, "its reader of expressions is used, and not its clock"},
	{"github.com/rs/zerolog/log", []string{}, "loggers are injected, never global"},
	{"text/template", []string{}, "it calls methods by their names, so the linker keeps all of them: see gateway/hypertext"},
	{"html/template", []string{}, "as text/template; gateway/hypertext escapes what stands in a page"},
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
