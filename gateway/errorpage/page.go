package errorpage

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html"
	"net/http"
	"strings"

	"troupe/gateway/login"
)

//go:embed page.html
var document string

// Policy is the Content-Security-Policy of the page: its own style, one icon from the
// server that sent it, and nothing else.
var Policy = "default-src 'none'; style-src '" + hashOf(login.Style()) + "'; img-src 'self'; " +
	"form-action 'none'; base-uri 'none'; frame-ancestors 'none'"

func hashOf(style []byte) string {
	sum := sha256.Sum256(style)
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// Options says what the page shows. All of it may be outside text.
type Options struct {
	// Base is what the server's paths hang below: empty or like "/platform".
	Base string
	// Status is that of the answer. Has says which ones have a page.
	Status int
	// ID is under what the log has more; empty: nothing.
	ID string
}

// words are what a person is told.
type words struct {
	title, text string
	again       bool // it may help to ask again
}

var wordsOf = map[int]words{
	http.StatusForbidden: {"No access", "You may not do this. If you think that you should, ask the people who run this service.", false},
	http.StatusNotFound:  {"Nothing here", "This address leads nowhere, or to something that you may not see.", false},
	http.StatusInternalServerError: {
		"Something went wrong", "The fault is on our side. If it comes again, tell the people who run this service.", true,
	},
	http.StatusServiceUnavailable: {"Not available now", "The service is starting, stopping or busy. Nothing was done; please try again in a moment.", true},
}

// Has reports whether there is a page for a status.
func Has(status int) bool {
	_, ok := wordsOf[status]
	return ok
}

// Page returns the page. Of a status without a page it is that of 500.
func Page(o Options) []byte {
	w, ok := wordsOf[o.Status]
	if !ok {
		w = wordsOf[http.StatusInternalServerError]
	}
	text, again := w.text, ""
	if o.ID != "" {
		text += " They find it in the log under " + o.ID + "."
	}
	if w.again {
		// NB: an empty address is the page itself.
		again = "<p class=\"provider\"><a href=\"\">Try again</a></p>\n"
	}
	return []byte(strings.NewReplacer(
		"{{base}}", html.EscapeString(o.Base),
		"{{style}}", string(login.Style()),
		"{{mark}}", login.Mark,
		"{{title}}", html.EscapeString(w.title),
		"{{text}}", html.EscapeString(text),
		"{{again}}", again,
	).Replace(document))
}
