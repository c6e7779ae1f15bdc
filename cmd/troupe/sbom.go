package main

import (
	"io"
	"net/url"
	"runtime/debug"
	"strings"

	"github.com/CycloneDX/cyclonedx-go"

	"troupe/cmd/internal/build"
	"troupe/gateway/console"
)

// writeSBOM writes what is in a program as CycloneDX 1.6, in JSON: the main module,
// the other modules, Go itself and the npm packages of the pages. It depends on the
// build alone: the same program always writes the same bytes.
func writeSBOM(to io.Writer, info *debug.BuildInfo) error {
	b := build.Of(info)
	bom := cyclonedx.NewBOM()
	main := goModule(&debug.Module{Path: info.Main.Path, Version: b.Version})
	main.Type = cyclonedx.ComponentTypeApplication
	addProperties(&main, "go.version", b.Go, "go.os", b.OS, "go.arch", b.Arch, "vcs.revision", b.Commit)
	bom.Metadata = &cyclonedx.Metadata{Timestamp: b.Time, Component: &main}
	release, _, _ := strings.Cut(strings.TrimPrefix(b.Go, "go"), " ") // behind it stand experiments
	components := []cyclonedx.Component{goModule(&debug.Module{Path: "std", Version: release})}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		components = append(components, goModule(m))
	}
	for _, p := range console.Packages() {
		components = append(components, cyclonedx.Component{
			Type: cyclonedx.ComponentTypeLibrary, BOMRef: npmURL(p.Name, p.Version), PackageURL: npmURL(p.Name, p.Version),
			Name: p.Name, Version: p.Version, Licenses: &cyclonedx.Licenses{{Expression: p.License}},
		})
	}
	bom.Components = &components
	encoder := cyclonedx.NewBOMEncoder(to, cyclonedx.BOMFileFormatJSON)
	return encoder.SetPretty(true).SetEscapeHTML(false).EncodeVersion(bom, cyclonedx.SpecVersion1_6)
}

// goModule is a component with the line that go.sum has for it. That is no hash of
// a file, so it is a property.
func goModule(m *debug.Module) cyclonedx.Component {
	// A purl keeps slashes of a Go path and escapes what else has a meaning in it.
	purl := "pkg:golang/" + m.Path + "@" + url.QueryEscape(m.Version)
	c := cyclonedx.Component{
		Type: cyclonedx.ComponentTypeLibrary, BOMRef: purl, PackageURL: purl, Name: m.Path, Version: m.Version,
	}
	addProperties(&c, "go.sum", m.Sum)
	return c
}

// npmURL is the purl of an npm package; the at sign of a scope is escaped.
func npmURL(name, version string) string {
	return "pkg:npm/" + strings.Replace(name, "@", "%40", 1) + "@" + version
}

// addProperties adds pairs of name and value, without those that are not known.
func addProperties(c *cyclonedx.Component, pairs ...string) {
	var properties []cyclonedx.Property
	for ; len(pairs) > 1; pairs = pairs[2:] {
		if pairs[1] != "" {
			properties = append(properties, cyclonedx.Property{Name: pairs[0], Value: pairs[1]})
		}
	}
	if properties != nil {
		c.Properties = &properties
	}
}
