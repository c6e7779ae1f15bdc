package provider

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"encoding/json"
	"time"
)

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

// sealer encrypts flows.
type sealer struct{ aead cipher.AEAD }

// newSealer returns one with a key of 32 bytes.
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
