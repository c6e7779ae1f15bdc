package main

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"troupe/gateway"
)

// sourceVersion is that of the tree: what the next release is to be. CHANGELOG.md has no newer
// one (a test).
const sourceVersion = "v0.1.0-dev"

// build is what the program was made from.
type build struct {
	// Version is the main module's, or that of the source when the Go tool knew none: go run does
	// not look for one.
	Version string `json:"version"`
	// Commit is the revision of the source, empty when the Go tool knew none.
	Commit string `json:"commit"`
	// Modified says that files differed from that revision.
	Modified bool `json:"modified"`
	// Time is when the revision was made, RFC 3339; empty without one.
	Time string `json:"time"`
	// Go is the version of the tool chain, "go1.26.8".
	Go string `json:"go"`
	// OS and Arch are what the program was made for, as GOOS and GOARCH say it.
	OS   string `json:"os"`
	Arch string `json:"arch"`
}

// buildInfo returns what the Go tool wrote into the program. A program that was
// built without modules has none: then it is empty but for the version of Go.
func buildInfo() *debug.BuildInfo {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return &debug.BuildInfo{GoVersion: runtime.Version()}
	}
	return info
}

func buildOf(info *debug.BuildInfo) build {
	version := info.Main.Version
	if version == "" || version == "(devel)" {
		version = sourceVersion
	}
	b := build{Version: version, Go: info.GoVersion, OS: runtime.GOOS, Arch: runtime.GOARCH}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

// String is the line that people read.
func (b build) String() string {
	from := "built from source"
	if b.Commit != "" {
		from = "commit " + b.Commit
	}
	if b.Modified {
		from += " (modified)"
	}
	return fmt.Sprintf("troupe %s, %s, %s %s/%s", b.Version, from, b.Go, b.OS, b.Arch)
}

// forGateway is what /readyz?verbose shows.
func (b build) forGateway() gateway.Build {
	return gateway.Build{Version: b.Version, Commit: b.Commit, Go: b.Go}
}

func newVersion() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show the version, the commit and the Go version that the program was built with",
		Long: "Show what this program was built from. /readyz?verbose shows the same of a running\n" +
			"service. With --sbom it is a software bill of materials instead: CycloneDX 1.6, JSON,\n" +
			"with every Go module and every npm package that is in the program.",
		Example: "  troupe version\n" +
			"  troupe version -o json | jq -r .commit\n" +
			"  troupe version --sbom > troupe.cdx.json",
		Args: arguments,
	}
	out := addOutput(cmd, anyForm...)
	sbom := cmd.Flags().Bool("sbom", false, "print a software bill of materials, CycloneDX 1.6 in JSON")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := out.open(cmd); err != nil {
			return err
		}
		if *sbom {
			if cmd.Flags().Changed("output") {
				return usageError{fmt.Errorf("--sbom is JSON: it goes without --output")}
			}
			return writeSBOM(out.to, buildInfo())
		}
		b := buildOf(buildInfo())
		if out.form == formTable {
			_, err := io.WriteString(out.to, b.String()+"\n")
			return err
		}
		text, err := json.MarshalIndent(b, "", "  ")
		if err != nil {
			return err
		}
		return out.document(text)
	}
	return cmd
}
