package parse

import (
	"net/http"
	"strings"

	"troupe/actors/failure"
	"troupe/actors/identity"
)

// Credentials is what a request shows of its sender: read, not yet believed. There is one reader for all routes; which
// kind a route takes is its own business.
type Credentials struct {
	// token and session are the texts to authenticate. Empty with the flag set
	// means that something stood there which cannot be one.
	token, session       string
	hasToken, hasSession bool
}

// ReadCredentials reads the headers Authorization and Authentication and the session cookie (gateway/INTERFACE.md, "Two
// headers, one parser"). An error is failure.ErrInvalid: the request says two different things about its sender, so it
// is answered 400 before anybody is looked up.
func ReadCredentials(h http.Header, cookie string) (Credentials, error) {
	var c Credentials
	var err error
	if c.token, c.hasToken, err = readTokens(h["Authorization"], h["Authentication"]); err != nil {
		return Credentials{}, err
	}
	if c.session, c.hasSession, err = Session(h["Cookie"], cookie); err != nil {
		return Credentials{}, err
	}
	return c, nil
}

// None reports whether the request shows nothing at all.
func (c *Credentials) None() bool { return !c.hasToken && !c.hasSession }

// Pick returns the credential to authenticate on a route that takes the given kinds. A token that stands there wins
// over a session, because a browser adds the cookie on its own and the token was put there by somebody; and it is never
// fallen back from, so that nobody acts as another user than intended.
func (c *Credentials) Pick(kinds identity.Kind) (identity.Kind, string, error) {
	switch {
	case kinds&identity.Token != 0 && c.hasToken && c.token != "":
		return identity.Token, c.token, nil
	case kinds&identity.Token != 0 && c.hasToken:
		return 0, "", failure.ErrUnauthorized
	case kinds&identity.Session != 0 && c.session != "":
		return identity.Session, c.session, nil
	}
	return 0, "", failure.ErrUnauthorized
}

// readTokens reads the lines of the two headers that may carry a token. The same token in both is fine.
func readTokens(authorization, authentication []string) (token string, present bool, err error) {
	if len(authorization) > 1 || len(authentication) > 1 {
		return "", false, Malformed("a credential header is repeated")
	}
	first, err := readToken(authorization)
	if err != nil {
		return "", false, err
	}
	second, err := readToken(authentication)
	switch {
	case err != nil:
		return "", false, err
	case len(authorization) == 0:
		return second, len(authentication) > 0, nil
	case len(authentication) == 0 || first == second:
		return first, true, nil
	case first == "" || second == "":
		return "", true, nil
	}
	return "", false, Malformed("the request carries two different tokens")
}

// readToken returns the token of a header's only line, and "" when there is
// none. net/http has taken off the blanks around the value.
func readToken(lines []string) (string, error) {
	if len(lines) == 0 {
		return "", nil
	}
	// NB: a comma makes a list, which is how two lines may arrive from a proxy; so it is answered as two lines are.
	if strings.IndexByte(lines[0], ',') >= 0 {
		return "", Malformed("a credential header holds a list")
	}
	scheme, token, _ := strings.Cut(lines[0], " ")
	if !EqualASCII(scheme, "svc.token") && !EqualASCII(scheme, "bearer") || !IsSecret(token, SecretCharsMax) {
		return "", nil
	}
	return token, nil
}

// Session returns the value of the session cookie. Two cookies of the name are refused even when they are equal: a
// sibling domain can set one, and nobody can tell which is ours.
func Session(lines []string, name string) (session string, present bool, err error) {
	return Cookie(lines, name, SecretCharsMax)
}

// Cookie is Session for a secret of up to so many characters.
func Cookie(lines []string, name string, most int) (session string, present bool, err error) {
	for _, line := range lines {
		for pair := range strings.SplitSeq(line, ";") {
			key, value, found := strings.Cut(pair, "=")
			if !found || TrimBlanks(key) != name {
				continue
			}
			if present {
				return "", false, Malformed("the request carries two session cookies")
			}
			present = true
			if value = TrimBlanks(value); IsSecret(value, most) {
				session = value
			}
		}
	}
	return session, present, nil
}

// TrimBlanks takes off the blanks around an element of a header.
func TrimBlanks(s string) string { return strings.Trim(s, " \t") }

const (
	SecretCharsMin = 43 // 256 bits in base64url
	SecretCharsMax = 255
)

// IsSecret reports whether s has the form of a token or session of up to so many characters: [A-Za-z0-9._-]{43,most}.
func IsSecret(s string, most int) bool {
	if len(s) < SecretCharsMin || len(s) > most {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case c == '.' || c == '_' || c == '-':
		default:
			return false
		}
	}
	return true
}

// EqualASCII reports whether s is lower, ignoring the case of ASCII letters.
// NB: strings.EqualFold would take "ſ" for an s.
func EqualASCII(s, lower string) bool {
	if len(s) != len(lower) {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}
