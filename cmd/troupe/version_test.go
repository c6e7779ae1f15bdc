package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/CycloneDX/cyclonedx-go"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/cmd/internal/build"
	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/clitest"
)

// released is the build information of a program as `go build` writes it.
var released = &debug.BuildInfo{
	GoVersion: "go1.26.8 X:jsonv2",
	Main:      debug.Module{Path: "troupe", Version: "v0.3.1"},
	Deps: []*debug.Module{
		{Path: "example.com/a/v2", Version: "v2.0.1+incompatible", Sum: "h1:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="},
		{Path: "example.com/old", Version: "v1.0.0", Replace: &debug.Module{Path: "example.com/new", Version: "v1.5.0", Sum: "h1:x"}},
	},
	Settings: []debug.BuildSetting{
		{Key: "vcs.revision", Value: "0123456789abcdef0123456789abcdef01234567"},
		{Key: "vcs.time", Value: "2026-11-22T10:00:00Z"},
		{Key: "vcs.modified", Value: "true"},
	},
}

func TestBuild(t *testing.T) {
	platform := runtime.GOOS + "/" + runtime.GOARCH
	for want, info := range map[string]*debug.BuildInfo{
		"troupe v0.3.1, commit 0123456789abcdef0123456789abcdef01234567 (modified), go1.26.8 X:jsonv2 " + platform: released,
		"troupe " + build.SourceVersion + ", built from source, go1.26.8 " + platform:                              {GoVersion: "go1.26.8", Main: debug.Module{Version: "(devel)"}},
	} {
		assert.Equal(t, want, build.Of(info).String())
	}
}

// TestVersion: the command and the flag say the same of this program.
func TestVersion(t *testing.T) {
	code, line, stderr := clitest.Invoke("version")
	want := regexp.MustCompile(`^troupe v\S+, (commit .+|built from source), ` + regexp.QuoteMeta(runtime.Version()) + ` \S+\n$`)
	require.True(t, code == cli.ExitDone && want.MatchString(line) && stderr == "", "version: got code %d, %q, %q", code, line, stderr)
	code, stdout, stderr := clitest.Invoke("--version")
	assert.True(t, code == cli.ExitDone && stdout == line && stderr == "", "--version: got code %d, %q, %q, want %q", code, stdout, stderr, line)
	var b build.Info
	code, text, _ := clitest.Invoke("version", "-o", "json")
	err := json.Unmarshal([]byte(text), &b)
	assert.True(t, err == nil && code == cli.ExitDone && b.String()+"\n" == line, "-o json: got code %d, %v, %s, want what %q says", code, err, text, line)
	_, text, _ = clitest.Invoke("version", "-o", "yaml")
	assert.Contains(t, text, "go: "+runtime.Version(), "-o yaml")
	for _, args := range [][]string{{"version", "now"}, {"version", "-o", "line"}, {"version", "--sbom", "-o", "yaml"}} {
		code, stdout, _ := clitest.Invoke(args...)
		assert.True(t, code == cli.ExitUsage && stdout == "", "%v: got code %d and %q, want %d", args, code, stdout, cli.ExitUsage)
	}
}

// TestSourceVersionIsTheNextRelease: the tree says what it will be, and the changelog begins
// with that version, unreleased.
func TestSourceVersionIsTheNextRelease(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "CHANGELOG.md"))
	require.NoError(t, err)
	assert.True(t, regexp.MustCompile(`^v\d+\.\d+\.\d+-dev$`).MatchString(build.SourceVersion), "the version of the source is %s", build.SourceVersion)
	next := strings.TrimSuffix(strings.TrimPrefix(build.SourceVersion, "v"), "-dev")
	heading := regexp.MustCompile(`(?m)^## .*$`).FindString(string(text))
	assert.Equal(t, "## "+next+" (unreleased)", heading, "the first heading of CHANGELOG.md")
}

func propertyOf(c *cyclonedx.Component, name string) string {
	if c.Properties != nil {
		for _, p := range *c.Properties {
			if p.Name == name {
				return p.Value
			}
		}
	}
	return ""
}

func readBill(t *testing.T, text []byte) *cyclonedx.BOM {
	t.Helper()
	instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(t, err)
	require.NoError(t, cycloneDX(t).Validate(instance), "not as CycloneDX, %s", text)
	b := new(cyclonedx.BOM)
	require.NoError(t, cyclonedx.NewBOMDecoder(bytes.NewReader(text), cyclonedx.BOMFileFormatJSON).Decode(b))
	return b
}

var bomSchema *jsonschema.Schema // once it is needed

func cycloneDX(t *testing.T) *jsonschema.Schema {
	t.Helper()
	if bomSchema != nil {
		return bomSchema
	}
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/CycloneDX/cyclonedx-go").Output()
	require.NoError(t, err, "where the module")
	const base = "http://cyclonedx.org/schema/"
	compiler := jsonschema.NewCompiler()
	for name, file := range map[string]string{
		"bom-1.6.schema.json": "bom-1.6.schema.json", "spdx.schema.json": "spdx.schema.json", "jsf-0.82.schema.json": "jsf-0.82.schemax.json",
	} {
		text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "schema", file))
		require.NoError(t, err)
		schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		require.NoError(t, err)
		require.NoError(t, compiler.AddResource(base+name, schema))
	}
	compiler.AssertFormat()
	bomSchema, err = compiler.Compile(base + "bom-1.6.schema.json")
	require.NoError(t, err)
	return bomSchema
}

func TestSBOMOfARelease(t *testing.T) {
	var text, again bytes.Buffer
	require.NoError(t, writeSBOM(&text, released))
	if err := writeSBOM(&again, released); err != nil || text.String() != again.String() {
		t.Errorf("the same build gives two bills (%v)", err)
	}
	b := readBill(t, text.Bytes())
	main := b.Metadata.Component
	if main.Type != "application" || main.PackageURL != "pkg:golang/troupe@v0.3.1" || propertyOf(main, "go.version") != "go1.26.8 X:jsonv2" ||
		propertyOf(main, "vcs.revision") != "0123456789abcdef0123456789abcdef01234567" || b.Metadata.Timestamp != "2026-11-22T10:00:00Z" {
		t.Errorf("the program: got %+v of %s", main, b.Metadata.Timestamp)
	}
	got := map[string]string{}
	for _, c := range *b.Components {
		got[c.PackageURL] = propertyOf(&c, "go.sum")
	}
	for purl, sum := range map[string]string{
		"pkg:golang/std@1.26.8":                             "",
		"pkg:golang/example.com/a/v2@v2.0.1%2Bincompatible": "h1:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
		"pkg:golang/example.com/new@v1.5.0":                 "h1:x",
	} {
		have, ok := got[purl]
		assert.True(t, ok && have == sum, "%s: got %q, %v, want %q", purl, have, ok, sum)
	}
	wrong, err := jsonschema.UnmarshalJSON(strings.NewReader(strings.Replace(text.String(), `"type": "library"`, `"type": "book"`, 1)))
	assert.True(t, err == nil && cycloneDX(t).Validate(wrong) != nil, "the schema takes a component that is a book (%v)", err)
	_, ok := got["pkg:golang/example.com/old@v1.0.0"]
	assert.False(t, ok, "what was replaced is in the bill")
}

// TestSBOMOfThisProgram: modules and npm packages that are certainly in it.
func TestSBOMOfThisProgram(t *testing.T) {
	code, text, stderr := clitest.Invoke("version", "--sbom")
	require.True(t, code == cli.ExitDone && stderr == "", "got code %d, %q", code, stderr)
	b := readBill(t, []byte(text))
	for _, want := range []string{"github.com/cockroachdb/pebble/v2", "github.com/julienschmidt/httprouter", "std", "react", "@rjsf/core"} {
		i := slices.IndexFunc(*b.Components, func(c cyclonedx.Component) bool { return c.Name == want })
		if !assert.GreaterOrEqual(t, i, 0, "%s is missing", want) {
			continue
		}
		c := (*b.Components)[i]
		isGo, isNPM := strings.Contains(want, "."), strings.HasPrefix(c.PackageURL, "pkg:npm/")
		assert.True(t, isGo == strings.HasPrefix(propertyOf(&c, "go.sum"), "h1:") && c.Version != "" && isNPM == (c.Licenses != nil), "got %+v", c)
	}
}
