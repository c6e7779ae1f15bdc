package console

import (
	"bytes"
	"regexp"
)

// Package is an npm package that is in the built pages.
type Package struct {
	Name, Version string
	// License is an SPDX expression.
	License string
}

// heading is the line that begins a package: "## react - 19.3.1 (MIT)".
var heading = regexp.MustCompile(`^## (\S+) - (\S+) \((.+)\)$`)

// Packages returns the npm packages in the pages, in the order of dist/licenses.md.
func Packages() []Package {
	var all []Package
	for line := range bytes.Lines(licenses()) {
		if found := heading.FindSubmatch(bytes.TrimSpace(line)); found != nil {
			all = append(all, Package{Name: string(found[1]), Version: string(found[2]), License: string(found[3])})
		}
	}
	return all
}

// licenses returns what the build of the pages says about the packages in them.
func licenses() []byte {
	text, err := built.ReadFile("dist/licenses.md")
	if err != nil {
		panic("console: the licences are not in the program: " + err.Error())
	}
	return text
}
