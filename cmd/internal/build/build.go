// Package build says what the program was built from.
package build

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"troupe/gateway"
)

// SourceVersion is that of the tree: what the next release is to be. CHANGELOG.md has no newer one (a test).
const SourceVersion = "v0.1.0-dev"

// Info is what the program was made from.
type Info struct {
	// Version is the main module's, or that of the source when the Go tool knew none: go run does not look for one.
	Version  string `json:"version"`
	Commit   string `json:"commit"`
	Modified bool   `json:"modified"`
	Time     string `json:"time"` // when the revision was made, RFC 3339; empty without one
	Go       string `json:"go"`
	OS       string `json:"os"` // OS and Arch are what the program was made for, as GOOS and GOARCH say it
	Arch     string `json:"arch"`
}

// Read returns what the Go tool wrote into the program.
func Read() *debug.BuildInfo {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return &debug.BuildInfo{GoVersion: runtime.Version()}
	}
	return info
}

// Of takes from a build info what is shown of it.
func Of(info *debug.BuildInfo) Info {
	version := info.Main.Version
	if version == "" || version == "(devel)" {
		version = SourceVersion
	}
	b := Info{Version: version, Go: info.GoVersion, OS: runtime.GOOS, Arch: runtime.GOARCH}
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
func (b Info) String() string {
	from := "built from source"
	if b.Commit != "" {
		from = "commit " + b.Commit
	}
	if b.Modified {
		from += " (modified)"
	}
	return fmt.Sprintf("troupe %s, %s, %s %s/%s", b.Version, from, b.Go, b.OS, b.Arch)
}

// ForGateway is what /readyz?verbose shows.
func (b Info) ForGateway() gateway.Build {
	return gateway.Build{Version: b.Version, Commit: b.Commit, Go: b.Go}
}

// This is what this program was made from.
func This() Info { return Of(Read()) }
