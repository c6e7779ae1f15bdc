package treecheck

import (
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// innerArrows says, for each folder of the top, which of its packages a package may
// import besides those of its own folder. "." is the folder of the top itself. A folder
// without a row belongs to the one above it; below the top each needs a row.
var innerArrows = map[string]map[string][]string{
	"statemachine": statemachineArrows,
	"persistence":  persistenceArrows,
	"actors":       actorsArrows,
	"gateway":      gatewayArrows,
	"bench":        benchArrows,
	"cmd":          cmdArrows,
}

var statemachineArrows = map[string][]string{
	"internal/markdown":       {},
	"internal/pattern":        {},
	"internal/schemacost":     {"internal/pattern"},
	"cputest":                 {},
	"cron":                    {},
	"packed":                  {},
	"decimal":                 {},
	"data":                    {},
	"document":                {"data"},
	"schema":                  {"data", "document", "internal/schemacost"},
	"schematest":              {"data", "document"},
	"filter":                  {"data", "internal/pattern"},
	"expr/internal/values":    {"data"},
	"expr/internal/functions": {"decimal", "expr/internal/values", "internal/pattern"},
	"expr/internal/limits":    {"expr/internal/functions", "expr/internal/values", "internal/pattern"},
	"expr":                    {"data", "internal/pattern", "expr/internal/functions", "expr/internal/limits", "expr/internal/values"},
	"internal/chart":          {"cron", "data", "expr", "schema"},
	"internal/check":          {"data", "document", "expr", "schema", "internal/chart"},
	"internal/clause":         {"cron", "data", "document", "expr", "schema", "internal/chart", "internal/check", "internal/schemacost"},
	"internal/parse":          {"data", "document", "expr", "internal/chart", "internal/check", "internal/clause"},
	"internal/record":         {"data", "packed", "internal/chart"},
	"internal/transit":        {"expr", "internal/chart", "internal/record"},
	"internal/migration":      {"internal/chart", "internal/record", "internal/transit"},
	".":                       {"data", "document", "expr", "schema", "internal/chart", "internal/clause", "internal/migration", "internal/parse", "internal/record", "internal/transit"},
	"appendixd":               {}, // its tests use the statemachine
	"diagram/layout":          {},
	"diagram":                 {".", "diagram/layout"},
	"scxml/ecmascript":        {"data"},
	"scxml":                   {".", "data", "document", "expr", "scxml/ecmascript"},
	"xstate/internal/tree":    {"document"},
	"xstate/internal/export":  {".", "document", "data", "xstate/internal/tree"},
	"xstate":                  {".", "data", "document", "xstate/internal/export", "xstate/internal/tree"},
}

var persistenceArrows = map[string][]string{
	"internal/file":       {},
	"clocktest":           {},
	"key":                 {}, // not even Pebble: whoever only names an instance or a shard imports it
	"integrity":           {"internal/file"},
	"internal/disk":       {"integrity", "internal/file"},
	"internal/engine":     {"integrity"},
	"internal/commit":     {"integrity", "internal/engine", "clocktest"},
	"internal/verify":     {"integrity", "internal/engine", "key"},
	"replica":             {},
	".":                   {"integrity", "replica", "key", "internal/commit", "internal/disk", "internal/engine", "internal/file", "internal/verify"},
	"replica/replicatest": {".", "key", "replica"},
	"storetest":           {".", "key"},
}

var actorsArrows = map[string][]string{
	".":                          {"internal/mailbox"},
	"cluster":                    {"guard", "cluster/peer", "failure"},
	"cluster/peer":               {"guard"},
	"failure":                    {},
	"guard":                      {},
	"logtest":                    {},
	"identity/password":          {"failure"},
	"identity/internal/attempts": {"failure"},
	"identity":                   {"guard", "failure", "identity/password", "identity/internal/attempts", "internal/wait"},
	"internal/retry":             {"failure"},
	"internal/breaks":            {},
	"internal/history":           {"internal/breaks"},
	"internal/instanceid":        {},
	"internal/mailbox":           {},
	"internal/semaphore":         {},
	"internal/wait":              {},
	"internal/supervise":         {".", "failure", "identity", "internal/semaphore"},
	"quota":                      {"failure", "identity"},
	"catalog":                    {"failure", "identity", "internal/wait"},
	"query":                      {"catalog", "failure", "identity", "internal/history", "internal/instanceid", "internal/wait", "internal/semaphore"},
	"changefeed":                 {"query", "catalog", "failure", "identity", "internal/history", "internal/instanceid"},
	"watch":                      {"changefeed", "query", "catalog", "failure", "identity", "internal/history", "internal/instanceid"},
	"form":                       {"query", "catalog", "failure", "identity", "internal/history", "internal/instanceid"},
	"timer":                      {"incident", "failure", "internal/instanceid", "internal/wait"},
	"incident":                   {"guard", "failure", "internal/instanceid", "internal/wait"},
	"child":                      {"internal/instanceid"},
	"invoke":                     {"child", "incident", "catalog", "query", "failure", "identity", "internal/breaks", "internal/instanceid"},
	"outbox":                     {"guard", "child", "failure", "internal/instanceid", "internal/semaphore", "internal/wait"},
	"schedule":                   {"guard", "catalog", "failure", "identity", "internal/semaphore", "internal/wait"},
	"deletion":                   {"task", "catalog", "form", "outbox", "timer", "failure"},
	"pending":                    {"incident", "timer", "outbox", "catalog", "query", "failure", "identity", "internal/instanceid"},
	"task":                       {"catalog", "query", "failure", "identity", "internal/history", "internal/instanceid"},
	"activity":                   {"pending", "query", "failure", "internal/history", "internal/instanceid"},
	"message":                    {"activity", "task", "form", "catalog", "failure", "identity", "internal/instanceid", "pending"},
	"pace":                       {},
	"instance":                   {".", "message", "pace", "deletion", "incident", "task", "activity", "child", "invoke", "timer", "outbox", "pending", "watch", "changefeed", "form", "catalog", "quota", "failure", "identity", "internal/wait", "internal/retry", "internal/history", "internal/instanceid"},
	"shard":                      {".", "guard", "instance", "message", "incident", "failure", "internal/breaks", "internal/instanceid", "internal/wait"},
	"shard/shardtest":            {".", "shard", "instance", "incident"},
	"workflow":                   {".", "guard", "instance", "shard", "message", "pace", "incident", "task", "activity", "child", "invoke", "schedule", "timer", "outbox", "pending", "watch", "changefeed", "form", "query", "catalog", "quota", "failure", "identity", "logtest", "internal/retry", "internal/history", "internal/instanceid"},
	"presentation":               {"message", "workflow", "form", "task", "catalog", "query", "failure", "identity", "internal/history", "internal/instanceid"},
	"migration":                  {"message", "guard", "pending", "workflow", "catalog", "query", "failure", "identity"},
	"formportal":                 {"message", ".", "workflow", "task", "form", "catalog", "failure", "identity", "internal/supervise"},
	"repository":                 {"guard", ".", "failure", "identity", "internal/supervise"},
	"template":                   {".", "repository", "failure", "identity", "internal/semaphore", "internal/supervise"},
	"home":                       {"guard", "failure", "internal/breaks", "internal/semaphore", "formportal", "form", "catalog", "repository", "identity"},
	"actorstest":                 {".", "cluster", "cluster/peer", "failure", "form", "home", "template", "formportal", "repository", "presentation", "workflow", "migration", "catalog", "identity"},
}

var gatewayArrows = map[string][]string{
	"api":                {},
	"toll":               {},
	"console":            {},
	"hypertext":          {},
	"login":              {},
	"errorpage":          {"login"},
	"provider":           {},
	"reference":          {"hypertext"},
	"wiretest":           {},
	"internal/listener":  {},
	"internal/parse":     {"api"},
	"internal/kernel":    {"api", "console", "toll", "internal/listener", "internal/parse"},
	"internal/show":      {"api", "internal/kernel"},
	"internal/forward":   {"internal/kernel", "internal/parse"},
	"internal/instances": {"api", "toll", "internal/forward", "internal/kernel", "internal/parse", "internal/show"},
	"internal/tasks":     {"api", "internal/kernel", "internal/parse", "internal/show"},
	"internal/portal":    {"api", "internal/kernel", "internal/parse", "internal/show"},
	"internal/operate":   {"api", "internal/kernel", "internal/parse", "internal/show"},
	"internal/design":    {"api", "internal/kernel", "internal/parse", "internal/show"},
	"internal/session":   {"console", "login", "provider", "internal/kernel", "internal/parse"},
	"internal/files":     {"api", "internal/kernel", "internal/parse"},
	"internal/pages":     {"console", "errorpage", "login", "reference", "internal/kernel", "internal/parse"},
	".": {
		"api", "internal/listener", "internal/kernel", "internal/forward", "internal/instances", "internal/tasks",
		"internal/portal", "internal/operate", "internal/design", "internal/session", "internal/files", "internal/pages",
	},
	"admin":      {"api"},
	"client":     {"api"},
	"servertest": {".", "api"},
}

var benchArrows = map[string][]string{
	"load":              {"process"},
	"process":           {},
	"record":            {},
	"report":            {"load", "record"},
	"trial":             {"load", "process", "record", "report"},
	"internal/ceiling":  {},
	"internal/harness":  {"process", "record"},
	"internal/compare":  {"internal/ceiling", "internal/harness", "load", "process", "record"},
	"internal/million":  {"internal/harness", "load", "record"},
	"internal/overload": {"internal/harness", "load", "process"},
	".":                 {"internal/compare", "internal/harness", "internal/million", "internal/overload", "process"},
}

var cmdArrows = map[string][]string{
	"internal/build":      {},
	"internal/cli":        {},
	"internal/demo":       {},
	"internal/endtoend":   {},
	"internal/homedir":    {},
	"internal/openid":     {},
	"internal/receiver":   {},
	"internal/scaffold":   {},
	"internal/treecheck":  {},
	"internal/clitest":    {"internal/cli"},
	"internal/connect":    {"internal/cli", "internal/homedir"},
	"internal/config":     {"internal/build", "internal/cli", "internal/homedir"},
	"internal/bench":      {"internal/build", "internal/cli", "internal/connect"},
	"internal/author":     {"internal/cli", "internal/config", "internal/connect", "internal/homedir", "internal/scaffold"},
	"internal/operate":    {"internal/cli", "internal/config", "internal/connect", "internal/homedir"},
	"internal/credential": {"internal/cli", "internal/config", "internal/connect", "internal/homedir"},
	"internal/cluster":    {"internal/build", "internal/cli", "internal/config", "internal/homedir"},
	"internal/serve":      {"internal/cli", "internal/config", "internal/demo", "internal/homedir"},
	"receiver":            {"internal/receiver"},
	"troupe":              {"internal/author", "internal/bench", "internal/build", "internal/cli", "internal/cluster", "internal/config", "internal/credential", "internal/operate", "internal/serve"},
}

func TestInnerArrows(t *testing.T) { holds(t, checkInnerArrows) }

func checkInnerArrows(t *testing.T, tree fs.FS) (faults []string) {
	for _, s := range sources(t, tree) {
		rows, drawn := innerArrows[s.Layer()]
		if !drawn || s.IsTest() {
			continue // checkArrows says so of a folder that is new
		}
		folder := below(s.Folder(), s.Layer())
		from := row(rows, folder)
		if from == "" {
			faults = append(faults, s.faultf(s.Syntax.Package, "no inner arrow is drawn for the folder %q of %s", folder, s.Layer()))
			continue
		}
		s.Imports(func(at token.Pos, _, importPath string) {
			target, ours := strings.CutPrefix(importPath, module+"/")
			if !ours || !within(target, s.Layer()) {
				return
			}
			to := row(rows, below(target, s.Layer()))
			if to != from && !slices.Contains(rows[from], to) {
				faults = append(faults, s.faultf(at, "%s must not import %s: the inner arrows are in this test", s.Folder(), importPath))
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
func row(rows map[string][]string, folder string) string {
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

func TestInnerArrowsControl(t *testing.T) {
	catches(t, checkInnerArrows, []planted{
		{"down is allowed", map[string]string{"actors/query/a.go": "package query\nimport _ \"troupe/actors/catalog\"\n"}, nil},
		{"within a folder is allowed", map[string]string{"actors/template/rml/a.go": "package rml\nimport _ \"troupe/actors/template/param\"\n"}, nil},
		{"up", map[string]string{"actors/query/a.go": "package query\nimport _ \"troupe/actors/workflow\"\n"}, []string{"actors/query/a.go:2: actors/query must not import"}},
		{"up from below a folder", map[string]string{"actors/repository/disk/a.go": "package disk\nimport _ \"troupe/actors/template\"\n"}, []string{"actors/repository/disk must not import"}},
		{"a leaf that imports the actors", map[string]string{"actors/failure/a.go": "package failure\nimport _ \"troupe/actors\"\n"}, []string{"actors/failure must not import"}},
		{"up to the folder of the top", map[string]string{"persistence/replica/a.go": "package replica\nimport _ \"troupe/persistence\"\n"}, []string{"persistence/replica must not import"}},
		{"aside in each folder of the top", map[string]string{
			"statemachine/expr/a.go": "package expr\nimport _ \"troupe/statemachine/filter\"\n",
			"gateway/api/a.go":       "package api\nimport _ \"troupe/gateway/login\"\n",
			"bench/load/a.go":        "package load\nimport _ \"troupe/bench/record\"\n",
			"cmd/receiver/a.go":      "package main\nimport _ \"troupe/cmd/internal/demo\"\n",
		}, []string{"bench/load must not import", "cmd/receiver must not import", "gateway/api must not import", "statemachine/expr must not import"}},
		{"a test may", map[string]string{"actors/query/a_test.go": "package query_test\nimport _ \"troupe/actors/workflow\"\n"}, nil},
		{"a new folder", map[string]string{"actors/tools/a.go": "package tools\n"}, []string{"no inner arrow"}},
		{"a new folder without a package at the top", map[string]string{"cmd/a.go": "package cmd\n"}, []string{`no inner arrow is drawn for the folder "." of cmd`}},
		{"elsewhere", map[string]string{"gateway/a.go": "package gateway\nimport _ \"troupe/actors/workflow\"\n"}, nil},
	})
}

func TestInnerArrowsPointDown(t *testing.T) {
	for layer, rows := range innerArrows {
		for _, fault := range checkTable(rows) {
			t.Errorf("%s: %s", layer, fault)
		}
	}
}

// checkTable demands that a table names only folders that it has a row for, and
// that no arrows in it lead back to where they came from.
func checkTable(rows map[string][]string) (faults []string) {
	for from, targets := range rows {
		for _, to := range targets {
			if _, drawn := rows[to]; !drawn {
				faults = append(faults, from+" has an arrow to "+to+", which has no row")
			}
		}
	}
	for _, circle := range circles(rows) {
		if len(circle) > 1 {
			faults = append(faults, "arrows lead in a circle: "+strings.Join(circle, " "))
		}
	}
	return faults
}

func TestInnerArrowsPointDownControl(t *testing.T) {
	for _, c := range []struct {
		rows map[string][]string
		want string
	}{
		{map[string][]string{"a": {"b", "c"}, "b": {"c"}, "c": {}}, ""},
		{map[string][]string{"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}, "arrows lead in a circle: a b c"},
		{map[string][]string{"a": {"b"}}, "a has an arrow to b, which has no row"},
	} {
		assert.Equal(t, c.want, strings.Join(checkTable(c.rows), "; "), c.rows)
	}
}
