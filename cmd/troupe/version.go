package main

import (
	"encoding/json"
	"io"
	"net/url"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"troupe/cmd/internal/build"
	"troupe/cmd/internal/cli"
	"troupe/gateway/console"
)

func newVersion() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show the version, commit and Go version of this program",
		Long: `/readyz?verbose shows the same for a running service. With --sbom, prints a software bill of materials (CycloneDX 1.6,
JSON) with all Go modules and npm packages of the program.`,
		Example: "  troupe version\n" +
			"  troupe version -o json | jq -r .commit\n" +
			"  troupe version --sbom > troupe.cdx.json",
	}
	out := cli.AddOutput(cmd, cli.AnyForm...)
	sbom := cmd.Flags().Bool("sbom", false, "print a software bill of materials (CycloneDX 1.6, JSON)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *sbom {
			if cmd.Flags().Changed("output") {
				return cli.Usagef("--sbom prints JSON: it cannot be combined with --output")
			}
			return writeSBOM(out.To, build.Read())
		}
		b := build.This()
		if out.Form == cli.FormTable {
			_, err := io.WriteString(out.To, b.String()+"\n")
			return err
		}
		return out.Marshaled(json.MarshalIndent(b, "", "  "))
	}
	return cmd
}

type (
	bill struct {
		Schema      string          `json:"$schema"`
		BOMFormat   string          `json:"bomFormat"`
		SpecVersion string          `json:"specVersion"`
		Version     int             `json:"version"`
		Metadata    billMetadata    `json:"metadata"`
		Components  []billComponent `json:"components"`
	}
	billMetadata struct {
		Timestamp string        `json:"timestamp,omitempty"`
		Component billComponent `json:"component"`
	}
	billComponent struct {
		BOMRef     string         `json:"bom-ref"`
		Type       string         `json:"type"`
		Name       string         `json:"name"`
		Version    string         `json:"version,omitempty"`
		Licenses   []billLicense  `json:"licenses,omitempty"`
		PackageURL string         `json:"purl"`
		Properties []billProperty `json:"properties,omitempty"`
	}
	billLicense struct {
		Expression string `json:"expression"`
	}
	billProperty struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
)

// writeSBOM depends on the build alone: the same program always writes the same bytes.
func writeSBOM(to io.Writer, info *debug.BuildInfo) error {
	b := build.Of(info)
	main := goModule(&debug.Module{Path: info.Main.Path, Version: b.Version})
	main.Type = "application"
	addProperties(&main, "go.version", b.Go, "go.os", b.OS, "go.arch", b.Arch, "vcs.revision", b.Commit)
	release, _, _ := strings.Cut(strings.TrimPrefix(b.Go, "go"), " ") // behind it stand experiments
	components := []billComponent{goModule(&debug.Module{Path: "std", Version: release})}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		components = append(components, goModule(m))
	}
	for _, p := range console.Packages() {
		components = append(components, billComponent{
			Type: "library", BOMRef: npmURL(p.Name, p.Version), PackageURL: npmURL(p.Name, p.Version),
			Name: p.Name, Version: p.Version, Licenses: []billLicense{{p.License}},
		})
	}
	encoder := json.NewEncoder(to)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(bill{
		Schema: "http://cyclonedx.org/schema/bom-1.6.schema.json", BOMFormat: "CycloneDX", SpecVersion: "1.6", Version: 1,
		Metadata: billMetadata{b.Time, main}, Components: components,
	})
}

// A line of go.sum is not a hash of a file, so it is a property.
func goModule(m *debug.Module) billComponent {
	// A purl keeps slashes of a Go path and escapes what else has a meaning in it.
	purl := "pkg:golang/" + m.Path + "@" + url.QueryEscape(m.Version)
	c := billComponent{Type: "library", BOMRef: purl, PackageURL: purl, Name: m.Path, Version: m.Version}
	addProperties(&c, "go.sum", m.Sum)
	return c
}

func npmURL(name, version string) string {
	return "pkg:npm/" + strings.Replace(name, "@", "%40", 1) + "@" + version
}

func addProperties(c *billComponent, pairs ...string) {
	for ; len(pairs) > 1; pairs = pairs[2:] {
		if pairs[1] != "" {
			c.Properties = append(c.Properties, billProperty{pairs[0], pairs[1]})
		}
	}
}
