package reference

import h "troupe/gateway/hypertext"

// write writes the page.
func (v *pageView) write(w *h.Writer) {
	w.Put(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Interface – %s</title>
<link rel="icon" href="favicon.ico">
<style>%s</style>
</head>
<body>
<a class="skip" href="#top">To the description</a>
<nav aria-label="Operations">
<p class="brand">%s <span class="note">interface %s</span></p>
<p><a href="openapi.yaml">YAML</a> · <a href="openapi.json">JSON</a></p>
`, v.Title, h.Raw(style), v.Title, v.Version)
	for _, g := range v.Groups {
		w.Put("<p class=\"group\"><a href=\"#%s\">%s</a></p>\n<ul class=\"operations\">", g.ID, g.Name)
		for _, o := range g.Operations {
			w.Put("\n<li><a href=\"#%s\"><span class=\"method %s\">%s</span> %s</a></li>", o.ID, o.Method, o.Method, o.Summary)
		}
		w.Put("\n</ul>\n")
	}
	w.Put(`<p class="group"><a href="#credentials">Credentials</a></p>
<p class="group"><a href="#answers">Shared answers</a></p>
<p class="group"><a href="#schemas">Schemas</a></p>
</nav>
<main id="top" tabindex="-1">
<h1>%s: the interface</h1>
<p class="lead">%s</p>
%s
`, v.Title, v.Summary, v.Description)
	for _, g := range v.Groups {
		w.Put("<section aria-labelledby=\"%s\">\n<h2 id=\"%s\">%s</h2>\n%s\n", g.ID, g.ID, g.Name, g.Description)
		for _, o := range g.Operations {
			o.write(w)
		}
		w.Put("</section>\n")
	}
	w.Put("<section aria-labelledby=\"credentials\">\n<h2 id=\"credentials\">Credentials</h2>\n")
	members(w, v.Credentials)
	w.Put("</section>\n<section aria-labelledby=\"answers\">\n<h2 id=\"answers\">Shared answers</h2>\n<p>The same answers of many operations. An error has one of the words that are listed for it.</p>\n")
	for _, a := range v.Faults {
		w.Put("<article id=\"answer-%s\"><h3><a href=\"#answer-%s\">%s</a></h3>\n%s", a.Name, a.Name, a.Name, a.Description)
		a.write(w)
		w.Put("</article>\n")
	}
	w.Put("</section>\n<section aria-labelledby=\"schemas\">\n<h2 id=\"schemas\">Schemas</h2>\n")
	for _, s := range v.Schemas {
		w.Put("<article id=\"schema-%s\"><h3><a href=\"#schema-%s\">%s</a></h3>\n%s", s.Name, s.Name, s.Name, s.Description)
		if len(s.Members) > 0 {
			members(w, s.Members)
		} else {
			w.Put("<p>")
			s.writeType(w)
			w.Put("</p>")
		}
		w.Put("</article>\n")
	}
	w.Put("</section>\n</main>\n</body>\n</html>\n")
}

func (o *operationView) write(w *h.Writer) {
	w.Put(`<article id="%s" aria-labelledby="%s-name">
<h3 id="%s-name"><a href="#%s">%s</a></h3>
<p class="address"><span class="method %s">%s</span> <code>%s</code></p>
%s
<p class="facts"><span><b>Operation</b> <code>%s</code></span> <span><b>Credential</b> %s</span>`,
		o.ID, o.ID, o.ID, o.ID, o.Summary, o.Method, o.Method, o.Path, o.Description, o.ID, o.Credentials)
	if o.Privilege != "" {
		w.Put(" <span><b>Privilege</b> <code>%s</code></span>", o.Privilege)
	}
	w.Put("</p>\n")
	if len(o.Parameters) > 0 {
		w.Put("<h4>Parameters</h4>\n")
		members(w, o.Parameters)
	}
	if o.Body != nil {
		w.Put("<h4>Body</h4>\n")
		o.Body.write(w)
	}
	if len(o.Answers) > 0 {
		w.Put("<h4>Answers</h4>\n")
	}
	for _, a := range o.Answers {
		w.Put("<div class=\"answer\"><div class=\"status\"><code>%s</code> %s</div>\n", a.Status, a.Description)
		a.write(w)
		w.Put("</div>\n")
	}
	if len(o.Faults) > 0 {
		w.Put("<details class=\"faults\"><summary>%d refusals:", len(o.Faults))
		for _, a := range o.Faults {
			w.Put(" <code>%s</code>", a.Status)
		}
		w.Put("</summary>\n<dl class=\"members\">")
		for _, a := range o.Faults {
			w.Put("<div><dt><a href=\"#answer-%s\"><code>%s</code> %s</a></dt><dd>%s</dd></div>", a.Name, a.Status, a.Name, a.Description)
		}
		w.Put("</dl></details>\n")
	}
	w.Put("</article>\n")
}

// write writes the headers and contents of an answer.
func (a *answerView) write(w *h.Writer) {
	if len(a.Headers) > 0 {
		members(w, a.Headers)
	}
	for _, c := range a.Contents {
		c.write(w)
	}
}

func (c *contentView) write(w *h.Writer) {
	w.Put("<p class=\"content\"><code>%s</code> ", c.Type)
	c.Schema.writeType(w)
	w.Put("</p>\n")
	if len(c.Schema.Members) > 0 {
		members(w, c.Schema.Members)
	}
	for _, e := range c.Examples {
		w.Put("<details><summary>%s</summary><pre tabindex=\"0\">%s</pre></details>\n", e.Name, e.Text)
	}
}

func members(w *h.Writer, all []memberView) {
	w.Put("<dl class=\"members\">\n")
	for _, m := range all {
		w.Put("<div><dt><code>%s</code>", m.Name)
		if m.Place != "" {
			w.Put(" <span class=\"note\">%s</span>", m.Place)
		}
		if m.Required {
			w.Put(" <span class=\"required\">required</span>")
		}
		w.Put(" ")
		m.Schema.writeType(w)
		w.Put("</dt>\n<dd>%s", m.Schema.Description)
		if len(m.Schema.Members) > 0 {
			members(w, m.Schema.Members)
		}
		w.Put("</dd></div>\n")
	}
	w.Put("</dl>\n")
}

func (s *schemaView) writeType(w *h.Writer) {
	if s.Type != "" {
		w.Put("<span class=\"type\">%s</span>", s.Type)
	}
	for _, note := range s.Notes {
		w.Put(" <span class=\"note\">%s</span>", note)
	}
}
