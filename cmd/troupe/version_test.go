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
		if got := build.Of(info).String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestVersion: the command and the flag say the same of this program.
func TestVersion(t *testing.T) {
	code, line, stderr := clitest.Invoke("version")
	if want := regexp.MustCompile(`^troupe v\S+, (commit .+|built from source), ` + regexp.QuoteMeta(runtime.Version()) + ` \S+\n$`); code != cli.ExitDone || !want.MatchString(line) || stderr != "" {
		t.Fatalf("version: got code %d, %q, %q", code, line, stderr)
	}
	if code, stdout, stderr := clitest.Invoke("--version"); code != cli.ExitDone || stdout != line || stderr != "" {
		t.Errorf("--version: got code %d, %q, %q, want %q", code, stdout, stderr, line)
	}
	var b build.Info
	code, text, _ := clitest.Invoke("version", "-o", "json")
	if err := json.Unmarshal([]byte(text), &b); err != nil || code != cli.ExitDone || b.String()+"\n" != line {
		t.Errorf("-o json: got code %d, %v, %s, want what %q says", code, err, text, line)
	}
	if _, text, _ := clitest.Invoke("version", "-o", "yaml"); !strings.Contains(text, "go: "+runtime.Version()) {
		t.Errorf("-o yaml: got %s", text)
	}
	for _, args := range [][]string{{"version", "now"}, {"version", "-o", "line"}, {"version", "--sbom", "-o", "yaml"}} {
		if code, stdout, _ := clitest.Invoke(args...); code != cli.ExitUsage || stdout != "" {
			t.Errorf("%v: got code %d and %q, want %d", args, code, stdout, cli.ExitUsage)
		}
	}
}

// TestSourceVersionIsTheNextRelease: the tree says what it will be, and the changelog has not
// released that yet.
func TestSourceVersionIsTheNextRelease(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "CHANGELOG.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`^v\d+\.\d+\.\d+-dev$`).MatchString(build.SourceVersion) {
		t.Errorf("the version of the source is %s", build.SourceVersion)
	}
	next := strings.TrimSuffix(strings.TrimPrefix(build.SourceVersion, "v"), "-dev")
	for _, released := range regexp.MustCompile(`(?m)^## \[?v?(\d\S*?)\]?( |$)`).FindAllStringSubmatch(string(text), -1) {
		if released[1] == next {
			t.Errorf("%s is released: the source is a version behind", next)
		}
	}
}

// propertyOf is the value of a component's property; empty when it has none.
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

// readBill checks a text against the schema of CycloneDX 1.6 and reads it.
func readBill(t *testing.T, text []byte) *cyclonedx.BOM {
	t.Helper()
	instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := cycloneDX(t).Validate(instance); err != nil {
		t.Fatalf("not as CycloneDX has it: %v\n%s", err, text)
	}
	b := new(cyclonedx.BOM)
	if err := cyclonedx.NewBOMDecoder(bytes.NewReader(text), cyclonedx.BOMFileFormatJSON).Decode(b); err != nil {
		t.Fatal(err)
	}
	return b
}

// cycloneDX returns the schema that the module brings along.
func cycloneDX(t *testing.T) *jsonschema.Schema {
	t.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/CycloneDX/cyclonedx-go").Output()
	if err != nil {
		t.Fatalf("where the module is: %v", err)
	}
	const base = "http://cyclonedx.org/schema/"
	compiler := jsonschema.NewCompiler()
	for name, file := range map[string]string{
		"bom-1.6.schema.json": "bom-1.6.schema.json", "spdx.schema.json": "spdx.schema.json", "jsf-0.82.schema.json": "jsf-0.82.schemax.json",
	} {
		text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "schema", file))
		if err != nil {
			t.Fatal(err)
		}
		schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := compiler.AddResource(base+name, schema); err != nil {
			t.Fatal(err)
		}
	}
	compiler.AssertFormat()
	schema, err := compiler.Compile(base + "bom-1.6.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func TestSBOMOfARelease(t *testing.T) {
	var text, again bytes.Buffer
	if err := writeSBOM(&text, released); err != nil {
		t.Fatal(err)
	}
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
		if have, ok := got[purl]; !ok || have != sum {
			t.Errorf("%s: got %q, %v, want %q", purl, have, ok, sum)
		}
	}
	wrong, err := jsonschema.UnmarshalJSON(strings.NewReader(strings.Replace(text.String(), `"type": "library"`, `"type": "book"`, 1)))
	if err != nil || cycloneDX(t).Validate(wrong) == nil {
		t.Errorf("the schema takes a component that is a book (%v)", err)
	}
	if _, ok := got["pkg:golang/example.com/old@v1.0.0"]; ok {
		t.Error("what was replaced is in the bill")
	}
}

// TestSBOMOfThisProgram: modules and npm packages that are certainly in it.
func TestSBOMOfThisProgram(t *testing.T) {
	code, text, stderr := clitest.Invoke("version", "--sbom")
	if code != cli.ExitDone || stderr != "" {
		t.Fatalf("got code %d, %q", code, stderr)
	}
	b := readBill(t, []byte(text))
	for _, want := range []string{"github.com/cockroachdb/pebble/v2", "github.com/julienschmidt/httprouter", "std", "react", "@rjsf/core"} {
		i := slices.IndexFunc(*b.Components, func(c cyclonedx.Component) bool { return c.Name == want })
		if i < 0 {
			t.Errorf("%s is missing", want)
			continue
		}
		c := (*b.Components)[i]
		isGo, isNPM := strings.Contains(want, "."), strings.HasPrefix(c.PackageURL, "pkg:npm/")
		if isGo != strings.HasPrefix(propertyOf(&c, "go.sum"), "h1:") || c.Version == "" || isNPM != (c.Licenses != nil) {
			t.Errorf("got %+v", c)
		}
	}
}
