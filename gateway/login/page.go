package login

import (
	_ "embed"
	"html"
	"net/url"
	"strings"
)

var (
	//go:embed login.html
	document string
	//go:embed login.css
	style []byte
	//go:embed login.js
	script []byte
	//go:embed favicon.ico
	icon []byte
)

// Mark is the picture that stands beside the name, as SVG in HTML.
//
//go:embed mark.svg
var Mark string

// Policy is the Content-Security-Policy of the page: its style and its script
// come from the server that sent it, and nothing runs or looks like anything
// because it stands in the page itself.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'none'; base-uri 'none'; frame-ancestors 'none'"

// Options says what the page shows. All of it may be outside text of any length.
type Options struct {
	// Base is what the server's paths hang below: empty or like "/platform".
	Base string
	// Next is what the request says about where to go after signing in. It goes
	// through the function Next.
	Next string
	// Provider is what the identity provider is called; empty: there is none.
	Provider string
	// Problem says why an earlier try did not work; empty: there was none.
	Problem string
}

// Page returns the page.
func Page(o Options) []byte {
	next, link := Next(o.Base, o.Next), ""
	if o.Provider != "" {
		link = strings.NewReplacer(
			"{{start}}", html.EscapeString(o.Base+"/login/oidc?next="+url.QueryEscape(next)),
			"{{provider}}", html.EscapeString(o.Provider),
		).Replace(providerLink)
	}
	return []byte(strings.NewReplacer(
		"{{base}}", html.EscapeString(o.Base),
		"{{next}}", html.EscapeString(next),
		"{{mark}}", Mark,
		"{{problem}}", html.EscapeString(o.Problem),
		"{{provider}}", link,
	).Replace(document))
}

// providerLink needs no script.
const providerLink = `<p class="provider"><a href="{{start}}">Sign in with {{provider}}</a></p>
`

// Style is the page's style sheet, at base + "/login/style.css". Nobody may
// change it.
func Style() []byte { return style }

// Icon is Mark for those who ask for /favicon.ico. Nobody may change it.
func Icon() []byte { return icon }

// Script is the page's script, at base + "/login/script.js". Nobody may change
// it.
func Script() []byte { return script }
