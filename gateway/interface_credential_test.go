package gateway_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"troupe/actors/actorstest"
	"troupe/gateway"
	"troupe/gateway/wiretest"
)

// TestInterfaceCredentials holds gateway/INTERFACE.md, "Two headers, one parser",
// gateway/INTERFACE.md, "401 is one answer", gateway/INTERFACE.md, "Ambiguous
// credentials", and gateway/INTERFACE.md, "Cross-site requests" (persistence/PROMISES.md,
// "F18"). TOKEN and SESSION are ann's; SECRET is that of TOKEN without its id.
// FuzzTokenHeaders and FuzzCookie go through what is no token and no session.
func TestInterfaceCredentials(t *testing.T) {
	s := newScene(t)
	token, session := s.Token("ann"), s.Session("ann")
	id, secret, _ := strings.Cut(token, ".")
	names := strings.NewReplacer("TOKEN", token, "SESSION", session, "SECRET", secret, "BOB", s.Token("bob"), "UNKNOWN", strings.Repeat("x", len(id)))
	const create, untyped = "create", "create without a type"
	before, created := len(s.instances(t, "codes")), 0
	var refused answer
	for status, requests := range map[int]map[string]string{ // what is sent, and its headers
		200: {
			"a token":                     "Authorization: svc.token TOKEN",
			"the other header":            "Authentication: svc.token TOKEN",
			"both":                        "Authentication: Bearer TOKEN",
			"a session":                   "Cookie: session=SESSION",
			"one token in both headers":   "Authorization: svc.token TOKEN\nAuthentication: Bearer TOKEN",
			"a token wins over a session": "Authorization: svc.token TOKEN\nCookie: session=" + strings.Repeat("x", 50),

			create + " by cookie":            "Cookie: session=SESSION",
			create + " of the same origin":   "Cookie: session=SESSION\nSec-Fetch-Site: same-origin",
			create + " of no page":           "Cookie: session=SESSION\nSec-Fetch-Site: none",
			create + " of the same Origin":   "Cookie: session=SESSION\nOrigin: http://{host}",
			create + " by token, cross-site": "Authorization: svc.token TOKEN\nSec-Fetch-Site: cross-site",
			"a safe method of another site":  "Cookie: session=SESSION\nSec-Fetch-Site: cross-site",
			untyped + " needs none":          "Authorization: svc.token TOKEN",
			untyped + " with the same type":  "Cookie: session=SESSION\n" + wiretest.JSONType,
		},
		400: {
			"two different tokens":               "Authorization: svc.token TOKEN\nAuthentication: svc.token BOB",
			"the same header twice":              "Authorization: svc.token TOKEN\nAuthorization: svc.token TOKEN",
			"a list in one header":               "Authorization: svc.token TOKEN, svc.token BOB",
			"two session cookies":                "Cookie: session=SESSION; session=TOKEN",
			"two session cookies beside a token": "Authorization: svc.token TOKEN\nCookie: session=SESSION; session=SESSION",
			create + " with two tokens":          "Authorization: svc.token TOKEN\nAuthentication: svc.token BOB",
		},
		401: {
			"missing":                            "X-Token: TOKEN\nProxy-Authorization: svc.token TOKEN",
			"an empty header":                    "Authorization: ",
			"another scheme":                     "Authorization: Basic TOKEN",
			"an unknown id":                      "Authorization: svc.token UNKNOWN.SECRET",
			"a wrong secret":                     "Authorization: svc.token " + id + "." + strings.Repeat("A", len(secret)),
			"an unknown session":                 "Cookie: session=UNKNOWN.SECRET",
			"a token is no session":              "Cookie: session=TOKEN",
			"a session is no token":              "Authorization: svc.token SESSION",
			"a malformed token beside a session": "Authorization: Basic x\nCookie: session=SESSION",
			"an unknown token beside a session":  "Authorization: svc.token UNKNOWN.SECRET\nCookie: session=SESSION",
			"one header well-formed, one is not": "Authorization: svc.token TOKEN\nAuthentication: Basic x",
			create + " with a session as token":  "Authorization: svc.token SESSION",
			untyped + " and a credential":        "X-None: of it",
		},
		403: {
			create + " of another site":               "Cookie: session=SESSION\nSec-Fetch-Site: cross-site",
			create + " of a sibling":                  "Cookie: session=SESSION\nSec-Fetch-Site: same-site",
			create + " of no origin":                  "Cookie: session=SESSION\nOrigin: null",
			create + " of another origin":             "Cookie: session=SESSION\nOrigin: https://evil.example",
			create + " of another site by an unknown": "Cookie: session=UNKNOWN.SECRET\nSec-Fetch-Site: cross-site",
		},
		415: {
			untyped + " by cookie":          "Cookie: session=SESSION",
			untyped + " but another":        "Cookie: session=SESSION\nContent-Type: text/plain",
			untyped + " but that of a form": "Cookie: session=SESSION\nContent-Type: application/x-www-form-urlencoded",
		},
	} {
		word := map[int]string{400: "InvalidContent", 401: "Unauthorized", 403: "AccessDenied", 415: "UnsupportedMediaType"}[status]
		for line, headers := range requests {
			r := request{Method: "GET", Path: wiretest.Root + "/choices", Headers: strings.Split(names.Replace(headers), "\n")}
			if strings.HasPrefix(line, create) {
				r.Method, r.Path, r.Body = "POST", wiretest.Root+"/create", wiretest.CreateBody("codes", "")
			}
			if strings.HasPrefix(line, create) && !strings.HasPrefix(line, untyped) {
				r.Headers = append(r.Headers, wiretest.JSONType)
			}
			a := s.Send(t, r)
			if status == 200 {
				assert.Equal(t, 200, a.Status, "%v %v", line, a.Body)
				created += len(r.Body) / len(wiretest.CreateBody("codes", ""))
				continue
			}
			assert.Empty(t, a.FaultReason(status, word), line)
			if status != 401 {
				continue
			}
			if refused.Status == 0 {
				refused = a
			}
			wantSameAnswer(t, a, refused)
		}
	}
	assert.Equal(t, `svc.token realm="troupe", Bearer realm="troupe"`, refused.Header.Get("WWW-Authenticate"), "WWW-Authenticate")
	s.wantInstances(t, "codes", before, created)

	desk := startService(t, serviceOptions{Options: actorstest.Options{Files: flows()}, Gateway: gateway.Options{SessionCookie: "desk"}})
	session = desk.Session("ann")
	for cookie, want := range map[string]int{"desk=" + session: 200, "session=" + session: 401, "desk=" + session + "; session=" + session: 200} {
		desk.user("Cookie: "+cookie).Get(t, wiretest.Root+"/choices").WantStatus(t, want)
	}
}
