package login

import (
	"cmp"
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

// Logo is the picture beside the product's name, as SVG in HTML.
//
//go:embed logo.svg
var Logo string

// Policy is the Content-Security-Policy of the page: its style and its script
// come from the server that sent it; inline scripts and styles are not allowed.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'none'; base-uri 'none'; frame-ancestors 'none'"

// Options says what the page shows. All of it may be outside text of any length.
type Options struct {
	// Base is the base path of the server: empty or like "/platform".
	Base string
	// Next is where the request says to go after signing in. The function Destination
	// checks it.
	Next string
	// Provider is the name of the identity provider; empty: there is none.
	Provider string
	// Failed is the status with which a sign-in through the provider has failed; 0: none has.
	Failed int
	// Language is the language of the page; empty is English.
	Language Language
}

// Page returns the page.
func Page(o Options) []byte {
	l := cmp.Or(o.Language, English)
	next, link := Destination(o.Base, o.Next), ""
	if o.Provider != "" {
		link = strings.NewReplacer(
			"{{or}}", html.EscapeString(words[l]["or"]),
			"{{with}}", html.EscapeString(words[l]["with"]),
			"{{start}}", html.EscapeString(o.Base+"/login/oidc?next="+url.QueryEscape(next)),
			"{{provider}}", html.EscapeString(o.Provider),
		).Replace(providerLink)
	}
	places := []string{
		"{{language}}", string(l),
		"{{base}}", html.EscapeString(o.Base),
		"{{next}}", html.EscapeString(next),
		"{{logo}}", Logo,
		"{{problem}}", html.EscapeString(problemOf(l, o.Failed)),
		"{{provider}}", link,
	}
	for key, text := range words[l] {
		places = append(places, "{{"+key+"}}", html.EscapeString(text))
	}
	return []byte(strings.NewReplacer(places...).Replace(document))
}

// providerLink needs no script.
const providerLink = `<p class="or"><span>{{or}}</span></p>
<p class="provider"><a href="{{start}}">{{with}} {{provider}}</a></p>
`

// Style is the page's style sheet, at base + "/login/style.css". Nobody may
// change it.
func Style() []byte { return style }

// Icon is Logo as /favicon.ico. Nobody may change it.
func Icon() []byte { return icon }

// Script is the page's script, at base + "/login/script.js". Nobody may change
// it.
func Script() []byte { return script }
