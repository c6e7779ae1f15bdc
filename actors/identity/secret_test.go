package identity

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
)

// TestNoSecretIsLeft holds persistence/PROMISES.md, "P21": it looks for secrets and
// passwords in everything that the service stores, logs and returns, and for names that
// would break a log.
func TestNoSecretIsLeft(t *testing.T) {
	var log bytes.Buffer
	m := newMemory()
	o := Options{Log: zerolog.New(&log).Level(zerolog.TraceLevel)}
	inBubble(t, m, o, func(t *testing.T, s *Service) {
		var said bytes.Buffer
		var secrets []string
		for _, kind := range []Kind{Token, Session} {
			for range 20 {
				secret, c := issued(t, s, kind, "john.doe", 0)
				secrets = append(secrets, secret[idChars+1:])
				fmt.Fprintf(&said, "%+v %v\n", c, s.Revoke(t.Context(), kind, secret[1:]))
				_, err := s.Authenticate(kind, changeAt(secret, 30))
				fmt.Fprintln(&said, err)
			}
		}
		passwords := []string{oak, "wrong horse", "tiny", "café crème and more", strings.Repeat("endless", 40)}
		for _, password := range passwords {
			fmt.Fprintln(&said, s.SetPassword(t.Context(), "john.doe", password))
			for _, user := range []UserID{"john.doe", "nobody", "no body"} {
				for range 7 {
					_, p, err := s.SignIn(t.Context(), user, password, nearby)
					fmt.Fprintln(&said, p, err)
				}
			}
		}
		_, _, err := s.SignIn(t.Context(), UserID("x\u202e\n{\"level\":\"error\"}"+strings.Repeat("y", 100_000)), oak, nearby)
		fmt.Fprintln(&said, err)
		pass(2 * time.Minute)
		m.failWith(errors.New("no"))
		s.SetDirectory(parse(t, staffWithoutJohn))
		pass(2 * time.Minute)
		fmt.Fprintf(&said, "%+v %+v\n", credentialsOf(s, Token|Session), s.Metrics())
		m.dump(&said)
		said.Write(log.Bytes())
		assert.Zero(t, planted(said.String(), secrets), "%d secrets", len(secrets))
		for _, password := range passwords {
			assert.True(t, !strings.Contains(said.String(), password) && !strings.Contains(said.String(), fmt.Sprintf("%q", password)), password)
		}
		for _, want := range []string{"credential created", "signed in", "sign-in failed", "password set", "sign-in not looked at", `"address":"192.0.2.7"`, `"user":"nobody"`} {
			assert.Contains(t, log.String(), want, "the log has no")
		}
		assert.True(t, !strings.ContainsAny(log.String(), "\u202e") && said.Len() <= 100_000, "a name is in the log as it came: %.300q", log.String())
		// The control: a secret that is there is found, in every form.
		for _, form := range forms(secrets[7]) {
			assert.NotZero(t, planted(said.String()+form, secrets), "the scan misses %q", form)
		}
	})
}

// forms are the ways in which a secret could stand somewhere.
func forms(secret string) []string {
	raw, err := base64.RawURLEncoding.DecodeString(secret)
	if err != nil {
		panic("a secret is not base64url")
	}
	return []string{secret, string(raw), hex.EncodeToString(raw), base64.StdEncoding.EncodeToString([]byte(secret))}
}

func planted(text string, secrets []string) (hits int) {
	for _, secret := range secrets {
		for _, form := range forms(secret) {
			hits += strings.Count(text, form)
		}
	}
	return hits
}
