package diagram

import (
	"crypto/sha256"
	_ "embed" // for the style
	"encoding/base64"

	"troupe/statemachine"
)

// tones are the colours of nodes, in texts for other programs; style has the same.
var tones = map[statemachine.Tone]struct{ pale, strong, dark string }{
	statemachine.Neutral: {"#eaf1ff", "#2563eb", "#1e40af"},
	statemachine.Waiting: {"#fff4d6", "#b45309", "#7c3a06"},
	statemachine.Good:    {"#e3f6e8", "#15803d", "#0f5c2c"},
	statemachine.Bad:     {"#fde8e8", "#b91c1c", "#861414"},
}

// StyleHash names the picture's style in a Content-Security-Policy (style-src): the one thing in an SVG that a policy
// without it keeps from working, in a document of its own. An image needs none.
var StyleHash = func() string {
	sum := sha256.Sum256([]byte(style))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}()

// style has the colours of the picture for light and dark pages. Selectors begin with the picture's class, so that it
// can stand in a page of others.
//
//go:embed style.css
var style string
