package login

import (
	_ "embed"
	"html"
	"strings"
)

var (
	//go:embed login.html
	document string
	//go:embed login.css
	style []byte
	//go:embed login.js
	script []byte
)

// Policy is the Content-Security-Policy of the page: its style and its script
// come from the server that sent it, and nothing runs or looks like anything
// because it stands in the page itself.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; " +
	"form-action 'none'; base-uri 'none'; frame-ancestors 'none'"

// Page returns the page for a server whose paths hang below base, which is empty
// or like "/platform". next is what the request says about where to go after
// signing in; it is outside text of any length and goes through Next.
func Page(base, next string) []byte {
	return []byte(strings.NewReplacer(
		"{{base}}", html.EscapeString(base),
		"{{next}}", html.EscapeString(Next(base, next)),
	).Replace(document))
}

// Style is the page's style sheet, at base + "/login/style.css". Nobody may
// change it.
func Style() []byte { return style }

// Script is the page's script, at base + "/login/script.js". Nobody may change
// it.
func Script() []byte { return script }
