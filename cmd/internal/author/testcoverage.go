package author

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"

	"troupe/actors/simulation/script"
	"troupe/cmd/internal/cli"
	"troupe/gateway/hypertext"
	"troupe/statemachine/diagram"
)

// writeCoverage draws what tests have reached: a picture of all charts, or a page that also lists what was missed.
func writeCoverage(file string, all []*script.Coverage) error {
	text := coveragePage(all)
	if filepath.Ext(file) == ".svg" {
		text = stack(all)
	}
	return os.WriteFile(file, text, 0o644)
}

func chartOf(c *script.Coverage) []byte {
	nodes, transitions := c.Counts.Reached()
	p := diagram.Picture{Chart: c.Counts.Of.Chart(), Languages: cli.ReaderLanguages(), Reached: &diagram.Reached{Nodes: nodes, Transitions: transitions}}
	return p.SVG()
}

var svgSize = regexp.MustCompile(`^<svg [^>]*width="(\d+)" height="(\d+)"`)

// stack puts pictures below each other.
func stack(all []*script.Coverage) []byte {
	var charts bytes.Buffer
	width, height := 0, 0
	for _, c := range all {
		chart := chartOf(c)
		if len(all) == 1 {
			return chart
		}
		size := svgSize.FindSubmatch(chart)
		wide, _ := strconv.Atoi(string(size[1]))
		high, _ := strconv.Atoi(string(size[2]))
		_, _ = fmt.Fprintf(&charts, "<svg y=\"%d\" %s", height, bytes.TrimPrefix(chart, []byte("<svg ")))
		width, height = max(width, wide), height+high
	}
	return fmt.Appendf(nil, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%[1]d\" height=\"%[2]d\" viewBox=\"0 0 %[1]d %[2]d\">\n%[3]s</svg>\n", width, height, charts.Bytes())
}

func coveragePage(all []*script.Coverage) []byte {
	var w hypertext.Writer
	w.Put(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Coverage of workflow tests</title>
<style>
body{font:15px/1.5 Helvetica,Arial,sans-serif;margin:2rem;color:#1d2433}
table{border-collapse:collapse;margin:1rem 0}
td,th{text-align:left;padding:.25rem 1rem .25rem 0;border-bottom:1px solid #d5dbe5}
svg{max-width:100%%;height:auto}
</style>
<h1>Coverage of workflow tests</h1>
<table><thead><tr><th>Workflow<th>States<th>Transitions<th>Guards<th>Actions<th>Reached<tbody>
`)
	share := func(s script.Share) string { return fmt.Sprintf("%d of %d", s.Reached, s.Of) }
	for _, c := range all {
		w.Put("<tr><td><a href=\"#%s\">%s</a><td>%s<td>%s<td>%s<td>%s<td>%.0f %%\n",
			c.Workflow, c.Workflow, share(c.States), share(c.Transitions), share(c.Guards), share(c.Actions), c.Percent())
	}
	w.Put("</table>\n")
	for _, c := range all {
		w.Put("<h2 id=\"%s\">%s, version %d</h2>\n%s\n", c.Workflow, c.Workflow, c.Version, hypertext.Raw(chartOf(c)))
		if len(c.Missed) == 0 {
			w.Put("<p>The tests reach everything.\n")
			continue
		}
		w.Put("<table><thead><tr><th>Not reached<th>Where<tbody>\n")
		for _, m := range c.Missed {
			w.Put("<tr><td>%s<td>%s:%d\n", missedText(&m), m.File, m.Line)
		}
		w.Put("</table>\n")
	}
	return []byte(w.Raw())
}
