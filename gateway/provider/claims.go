package provider

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"troupe/actors/identity"
	"troupe/statemachine"
)

type claims map[string]any

// find returns a claim. A name with dots that is not a claim itself leads into objects: "realm_access.roles".
func (c claims) find(name string) (any, bool) {
	if value, ok := c[name]; ok {
		return value, true
	}
	first, rest, ok := strings.Cut(name, ".")
	if !ok {
		return nil, false
	}
	inner, ok := c[first].(map[string]any)
	if !ok {
		return nil, false
	}
	return claims(inner).find(rest)
}

// user returns the login name. Of name@domain only the name counts, and only when the domain is the given one: john.doe
// of another domain is another person. Errors never contain the value.
func (c claims) user(name, domain string) (identity.UserID, error) {
	value, ok := c.find(name)
	if !ok {
		return "", fmt.Errorf("there is no claim %q", name)
	}
	text, _ := value.(string)
	if name == "email" {
		// Anybody can enter an address; a provider that has checked it says so.
		if verified, _ := c["email_verified"].(bool); !verified {
			return "", errors.New("the e-mail address is not verified")
		}
	}
	if domain != "" {
		local, found, ok := strings.Cut(text, "@")
		if !ok || !strings.EqualFold(found, domain) {
			return "", fmt.Errorf("the claim %q is not a name of the domain %q", name, domain)
		}
		text = local
	}
	if !statemachine.IsIdentifier(text) {
		return "", fmt.Errorf("the claim %q is not a login name", name)
	}
	return identity.UserID(text), nil
}

// roles returns the roles that the values of a claim stand for, each once. Values
// that are not text or are not mapped give none.
func (c claims) roles(name string, of map[string][]identity.RoleID) []identity.RoleID {
	value, _ := c.find(name)
	list, isList := value.([]any)
	if !isList {
		list = []any{value}
	}
	var roles []identity.RoleID
	for _, item := range list {
		if text, ok := item.(string); ok {
			roles = append(roles, of[text]...)
		}
	}
	slices.Sort(roles)
	return slices.Compact(roles)
}

// FlowMax is the time from Begin to Finish that a person has.
const FlowMax = 10 * time.Minute

// flow is a sign-in that has begun. It is stored in the browser's cookie.
type flow struct {
	State    string `json:"s"`
	Nonce    string `json:"n"`
	Verifier string `json:"v"`
	Redirect string `json:"r"`
	Next     string `json:"x"`
	Begun    int64  `json:"t"` // Unix milliseconds
}

type sealer struct{ aead cipher.AEAD }

func newSealer(key []byte) (sealer, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return sealer{}, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	return sealer{aead}, err
}

// seal returns a text of A-Z a-z 0-9 - and _.
func (s sealer) seal(f *flow) (string, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // it would take six bytes for each "&", and browsers drop large cookies
	if err := encoder.Encode(f); err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(s.aead.Seal(nil, nil, text.Bytes(), nil)), nil
}

// open returns the flow in a text, or false when seal did not make the text.
func (s sealer) open(text string) (*flow, bool) {
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return nil, false
	}
	plain, err := s.aead.Open(nil, nil, sealed, nil)
	if err != nil {
		return nil, false
	}
	f := new(flow)
	return f, json.Unmarshal(plain, f) == nil
}
