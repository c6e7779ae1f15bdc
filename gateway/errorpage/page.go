// Package errorpage is the HTML page for an error: not found, no access, an internal error, or a service that accepts no
// requests now. Its style is inline, and Policy names the style by its hash, so that the page is complete also while the
// server starts, stops or is overloaded. It has no script and no text of the request.
package errorpage

import (
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html"
	"net/http"
	"strconv"
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
	Base string // the base path of the server: empty or like "/platform"
	// Status is the status of the answer. Has reports which ones have a page.
	Status   int
	ID       string         // the request id in the log; empty: none is shown
	Language login.Language // the language of the page; empty is English
}

type content struct {
	title, text string
	retry       bool // trying again may help
}

var contents = map[login.Language]map[int]content{
	login.English: {
		http.StatusForbidden:           {"No access", "You do not have permission to view this page. If you need access, ask your administrator.", false},
		http.StatusNotFound:            {"Page not found", "The page does not exist, or you do not have access to it.", false},
		http.StatusInternalServerError: {"Something went wrong", "An internal error occurred. If it happens again, tell your administrator.", true},
		http.StatusServiceUnavailable:  {"Service unavailable", "The service is starting, stopping or busy. Nothing was changed. Please try again in a moment.", true},
	},
	login.German: {
		http.StatusForbidden:           {"Kein Zugang", "Sie dürfen diese Seite nicht sehen. Wenn Sie Zugang brauchen, wenden Sie sich an die Administration.", false},
		http.StatusNotFound:            {"Seite nicht gefunden", "Die Seite gibt es nicht, oder Sie haben keinen Zugang zu ihr.", false},
		http.StatusInternalServerError: {"Etwas ist schiefgegangen", "Ein interner Fehler ist aufgetreten. Wenn das wieder geschieht, wenden Sie sich an die Administration.", true},
		http.StatusServiceUnavailable:  {"Dienst nicht verfügbar", "Der Dienst startet, wird beendet oder ist ausgelastet. Es wurde nichts geändert. Bitte versuchen Sie es gleich noch einmal.", true},
	},
}

var links = map[login.Language]struct{ id, retry, start string }{
	login.English: {"Error ID:", "Try again", "Go to the start page"},
	login.German:  {"Fehlernummer:", "Erneut versuchen", "Zur Startseite"},
}

// Has reports whether there is a page for a status.
func Has(status int) bool {
	_, ok := contents[login.English][status]
	return ok
}

// Page returns the page. For a status without one it is the page of 500.
func Page(o Options) []byte {
	l := cmp.Or(o.Language, login.English)
	w, ok := contents[l][o.Status]
	if !ok {
		o.Status = http.StatusInternalServerError
		w = contents[l][o.Status]
	}
	id, retry := "", ""
	if o.ID != "" {
		id = `<p class="quiet">` + links[l].id + " <code>" + html.EscapeString(o.ID) + "</code></p>\n"
	}
	if w.retry {
		// NB: an empty address is the page itself.
		retry = "<p class=\"provider\"><a href=\"\">" + links[l].retry + "</a></p>\n"
	}
	return []byte(strings.NewReplacer(
		"{{language}}", string(l),
		"{{base}}", html.EscapeString(o.Base),
		"{{style}}", string(login.Style()),
		"{{logo}}", login.Logo,
		"{{status}}", strconv.Itoa(o.Status),
		"{{title}}", html.EscapeString(w.title),
		"{{text}}", html.EscapeString(w.text),
		"{{id}}", id,
		"{{retry}}", retry,
		"{{start}}", links[l].start,
	).Replace(document))
}
