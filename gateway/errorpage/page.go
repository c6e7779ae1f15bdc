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
var Policy = "default-src 'none'; style-src '" + styleHash(login.Style()) + "'; img-src 'self'; " +
	"form-action 'none'; base-uri 'none'; frame-ancestors 'none'"

func styleHash(style []byte) string {
	sum := sha256.Sum256(style)
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// Options says what the page shows. All of it may be outside text.
type Options struct {
	// Base is the base path of the server: empty or like "/platform".
	Base string
	// Status is the status of the answer. Has reports which ones have a page.
	Status int
	// ID is the request id in the log; empty: none is shown.
	ID string
}

// content is what a person reads.
type content struct {
	title, text string
	retry       bool // trying again may help
}

var contents = map[int]content{
	http.StatusForbidden: {"No access", "You do not have permission to view this page. If you need access, ask your administrator.", false},
	http.StatusNotFound:  {"Page not found", "The page does not exist, or you do not have access to it.", false},
	http.StatusInternalServerError: {
		"Something went wrong", "An internal error occurred. If it happens again, tell your administrator.", true,
	},
	http.StatusServiceUnavailable: {"Service unavailable", "The service is starting, stopping or busy. Nothing was changed. Please try again in a moment.", true},
}

// Has reports whether there is a page for a status.
func Has(status int) bool {
	_, ok := contents[status]
	return ok
}

// Page returns the page. For a status without one it is the page of 500.
func Page(o Options) []byte {
	w, ok := contents[o.Status]
	if !ok {
		w = contents[http.StatusInternalServerError]
	}
	text, retry := w.text, ""
	if o.ID != "" {
		text += " Error ID: " + o.ID
	}
	if w.retry {
		// NB: an empty address is the page itself.
		retry = "<p class=\"provider\"><a href=\"\">Try again</a></p>\n"
	}
	return []byte(strings.NewReplacer(
		"{{base}}", html.EscapeString(o.Base),
		"{{style}}", string(login.Style()),
		"{{logo}}", login.Logo,
		"{{title}}", html.EscapeString(w.title),
		"{{text}}", html.EscapeString(text),
		"{{retry}}", retry,
	).Replace(document))
}
