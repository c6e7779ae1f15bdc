// Package login is the page on which a person signs in: an HTML document, its style and its script. They load nothing
// from another server.
//
//	GET /login?next=/x ──► Page: the form, and where to go after it (Destination)
//	                          │ its script sends POST /session
//	                          │  └─ 200: the browser goes on to next
//	                          └─ or a link to GET /login/oidc, with a provider
//
// What the page is told the server has checked. Policy is the Content-Security-Policy under which the page works.
package login

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	_ "embed"
	"html"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"troupe/actors/identity"
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
	Base string // the base path of the server: empty or like "/platform"
	// Next is where the request says to go after signing in. The function Destination checks it.
	Next     string
	Provider string   // the name of the identity provider; empty: there is none
	Failed   int      // the status with which a sign-in through the provider has failed; 0: none has
	Language Language // the language of the page; empty is English
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

// Style is the page's style sheet, at base + "/login/style.css". Nobody may change it.
func Style() []byte { return style }

// Icon is Logo as /favicon.ico. Nobody may change it.
func Icon() []byte { return icon }

// Script is the page's script, at base + "/login/script.js". Nobody may change it.
func Script() []byte { return script }

// Language is a language of the pages that need no script of the console: the login page and the error pages.
type Language string

// The languages. English is for everybody who reads no other of them.
const (
	English Language = "en"
	German  Language = "de"
)

// Speak returns the first language that is among the reader's, whose tags (BCP 47) come in
// their order, such as "de-AT".
func Speak(tags []string) Language {
	for _, tag := range tags {
		base, _, _ := strings.Cut(tag, "-")
		switch l := Language(strings.ToLower(base)); l {
		case English, German:
			return l
		}
	}
	return English
}

// words are the texts of the page in one language. Those from "wrong" on are for its script, which puts a number in
// the place of #.
var words = map[Language]map[string]string{
	English: {
		"title": "Sign in", "user": "User", "password": "Password", "show": "Show password", "submit": "Sign in",
		"noscript": "Signing in with a password requires JavaScript.", "with": "Sign in with", "or": "or",
		"wrong": "Wrong user or password.", "slow-minutes": "Too many failed attempts. Try again in # minutes.",
		"slow-seconds": "Too many failed attempts. Try again in # seconds.", "slow-second": "Too many failed attempts. Try again in a second.",
		"busy": "The service is busy. Try again in a moment.", "failed": "Sign-in failed (#).",
		"used":        "This link has been used, or its time is over. “troupe serve --demo” prints new ones.",
		"unreachable": "The service cannot be reached. Check your connection and try again.",
	},
	German: {
		"title": "Anmelden", "user": "Benutzer", "password": "Passwort", "show": "Passwort zeigen", "submit": "Anmelden",
		"noscript": "Die Anmeldung mit Passwort braucht JavaScript.", "with": "Anmelden mit", "or": "oder",
		"wrong": "Benutzer oder Passwort ist falsch.", "slow-minutes": "Zu viele Fehlversuche. Versuchen Sie es in # Minuten wieder.",
		"slow-seconds": "Zu viele Fehlversuche. Versuchen Sie es in # Sekunden wieder.", "slow-second": "Zu viele Fehlversuche. Versuchen Sie es in einer Sekunde wieder.",
		"busy": "Der Dienst ist ausgelastet. Versuchen Sie es gleich noch einmal.", "failed": "Die Anmeldung ist fehlgeschlagen (#).",
		"used":        "Dieser Link wurde schon benutzt, oder seine Zeit ist um. „troupe serve --demo“ zeigt neue.",
		"unreachable": "Der Dienst ist nicht erreichbar. Prüfen Sie die Verbindung und versuchen Sie es noch einmal.",
	},
}

// problems say why a sign-in through the provider failed, by the status of its answer; 0 is for all others.
var problems = map[Language]map[int]string{
	English: {
		http.StatusBadRequest:         "This sign-in has expired or was started in another browser. Please try again.",
		http.StatusUnauthorized:       "The identity provider did not confirm your sign-in, or you do not have access to this service.",
		http.StatusForbidden:          "Please start signing in on this page.",
		http.StatusNotFound:           "This sign-in method is not available.",
		http.StatusTooManyRequests:    "Signing in is not possible now. Please try again in a moment.",
		http.StatusServiceUnavailable: "Signing in is not possible now. Please try again in a moment.",
		0:                             "Sign-in failed. Please try again.",
	},
	German: {
		http.StatusBadRequest:         "Diese Anmeldung ist abgelaufen oder wurde in einem anderen Browser begonnen. Bitte versuchen Sie es noch einmal.",
		http.StatusUnauthorized:       "Der Anmeldedienst hat Ihre Anmeldung nicht bestätigt, oder Sie haben keinen Zugang zu diesem Dienst.",
		http.StatusForbidden:          "Bitte beginnen Sie die Anmeldung auf dieser Seite.",
		http.StatusNotFound:           "Diese Art der Anmeldung gibt es hier nicht.",
		http.StatusTooManyRequests:    "Die Anmeldung ist gerade nicht möglich. Bitte versuchen Sie es gleich noch einmal.",
		http.StatusServiceUnavailable: "Die Anmeldung ist gerade nicht möglich. Bitte versuchen Sie es gleich noch einmal.",
		0:                             "Die Anmeldung ist fehlgeschlagen. Bitte versuchen Sie es noch einmal.",
	},
}

// problemOf returns what the page says of a sign-in that failed with a status; nothing for success.
func problemOf(l Language, status int) string {
	if status < http.StatusBadRequest {
		return ""
	}
	if text, ok := problems[l][status]; ok {
		return text
	}
	return problems[l][0]
}

// LinkMax is how long a link can be used.
const LinkMax = 10 * time.Minute

// Links are secrets that each sign one person in, once. They are in memory only: the next
// start of the program knows none of them.
type Links struct {
	clock func() time.Time

	mu      sync.Mutex
	invited map[[sha256.Size]byte]invitation // by the hash of the secret
}

// invitation is what a link is good for.
type invitation struct {
	user identity.UserID
	ends time.Time
}

// NewLinks returns no links. clock tells the time; nil is time.Now.
func NewLinks(clock func() time.Time) *Links {
	if clock == nil {
		clock = time.Now
	}
	return &Links{clock: clock, invited: map[[sha256.Size]byte]invitation{}}
}

// Add makes a link for a person, and returns what follows the base path in its address. The
// secret is in the fragment, which browsers send to nobody: it is in no log and no Referer. The
// page of the link spends it with a request of its own, so that a program that looks at
// addresses, such as a preview, does not. next is where the page leads; empty: to the start page.
func (l *Links) Add(user identity.UserID, next string) string {
	secret := rand.Text()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.invited[sha256.Sum256([]byte(secret))] = invitation{user, l.clock().Add(LinkMax)}
	page := "/login"
	if next != "" {
		page += "?next=" + url.QueryEscape(next)
	}
	return page + "#link=" + secret
}

// Take spends a link, and returns whom it signs in. A link that nobody made, that was used, or
// whose time is over is false.
func (l *Links) Take(secret string) (identity.UserID, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock()
	for hash, i := range l.invited {
		if !now.Before(i.ends) {
			delete(l.invited, hash)
		}
	}
	hash := sha256.Sum256([]byte(secret))
	i, ok := l.invited[hash]
	delete(l.invited, hash)
	return i.user, ok
}

// DestinationBytesMax bounds the address to go to.
const DestinationBytesMax = 2048

// Destination returns where a browser goes after signing in: to requested, when that is a path of this server below
// base, with its query and fragment; otherwise to the root of base, "/" or "/platform/". An address of another server
// is never used, however it is written: a link to our login page must not lead elsewhere (an open redirect). The login
// page itself is not used either.
func Destination(base, requested string) string {
	root := base + "/"
	if len(requested) > DestinationBytesMax || !isPlainASCII(requested) {
		return root
	}
	// NB: a browser takes "//x" and "/\x" for the name of a server, and so it
	// does with "/<tab>/x"; isPlainASCII has refused the last two.
	if !strings.HasPrefix(requested, "/") || strings.HasPrefix(requested, "//") {
		return root
	}
	u, err := url.Parse(requested)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || u.Opaque != "" || hasDotSegments(u.Path) {
		return root
	}
	if u.Path != base && !strings.HasPrefix(u.Path, root) || u.Path == base+"/login" || strings.HasPrefix(u.Path, base+"/login/") {
		return root
	}
	return requested
}

// isPlainASCII reports whether s has only visible ASCII characters and no backslash, as every valid URL has (RFC 3986).
func isPlainASCII(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' || s[i] == '\\' {
			return false
		}
	}
	return true
}

// hasDotSegments reports whether a decoded path has a segment "." or "..", with which
// a browser would go to another path than the one that was checked. It is also true
// for a doubled slash and a backslash; no path of the server has one.
func hasDotSegments(path string) bool {
	if strings.Contains(path, "//") || strings.Contains(path, `\`) {
		return true
	}
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "." || segment == ".." {
			return true
		}
	}
	return false
}
