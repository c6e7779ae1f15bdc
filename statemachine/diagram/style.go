package diagram

import (
	"crypto/sha256"
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
const style = `
.tp text{font:13px Helvetica,Arial,"Liberation Sans",sans-serif;fill:#1d2433}
.tp .title{font-weight:700}
.tp text.head{font-size:15px}
.tp text.heading{font-size:18px}
.tp text.under{font-size:12px}
.tp .caption>text,.tp .caption>g>text{paint-order:stroke;stroke-width:5px;stroke-linejoin:round;stroke:#f6f8fb}
.tp .caption.even>text,.tp .caption.even>g>text{stroke:#eef2f8}
.tp .caption.odd>text,.tp .caption.odd>g>text{stroke:#fff}
.tp .event,.tp .timer{font-size:11.5px;font-weight:700}
.tp .timer{font-style:italic}
.tp .guard,.tp .note,.tp .key{font-size:11px;fill:#5d6b82}
.tp .page{fill:#fff}
.tp .machine>.box{fill:#f6f8fb;stroke:#d5dbe5}
.tp .even>.box{fill:#eef2f8;stroke:#b9c3d3}
.tp .odd>.box{fill:#fff;stroke:#b9c3d3}
.tp .leaf>.box{fill:#fff;stroke:#7b8798;stroke-width:1.25}
.tp .leaf.waiting>.box{fill:#fff4d6;stroke:#b45309}
.tp .leaf.good>.box{fill:#e3f6e8;stroke:#15803d}
.tp .leaf.bad>.box{fill:#fde8e8;stroke:#b91c1c}
.tp .leaf.waiting>.ring{stroke:#b45309}
.tp .leaf.good>.ring{stroke:#15803d}
.tp .leaf.bad>.ring{stroke:#b91c1c}
.tp .ring,.tp .divider{fill:none;stroke:#7b8798}
.tp .divider{stroke:#b9c3d3;stroke-dasharray:5 4}
.tp .line{fill:none;stroke:#7b8798;stroke-width:1.25}
.tp path.head,.tp .dot{fill:#7b8798}
.tp .back{fill:#f6f8fb}
.tp .back.even{fill:#eef2f8}
.tp .back.odd{fill:#fff}
.tp .quiet>.box,.tp .quiet>.ring,.tp .quiet>.divider,.tp .quiet>.line,.tp .quiet>path.head,.tp .quiet>.dot{opacity:.5}
.tp .quiet>text,.tp .quiet>g>text{fill:#5d6b82}
.tp .visited>.box{stroke:#2563eb;stroke-width:2}
.tp .leaf.visited>.box{fill:#eaf1ff;stroke:#2563eb}
.tp .leaf.visited.waiting>.box{fill:#fff4d6}
.tp .leaf.visited.good>.box{fill:#e3f6e8}
.tp .leaf.visited.bad>.box{fill:#fde8e8}
.tp .leaf.visited>.ring{stroke:#2563eb}
.tp .visited>.line{stroke:#2563eb;stroke-width:2.5}
.tp .visited>path.head,.tp .visited>.dot{fill:#2563eb}
.tp .visited>.event,.tp .visited>.timer{fill:#1e4fc4}
.tp .internal.visited>.note{fill:#1e4fc4;font-weight:700}
.tp .leaf.now>.box{fill:#2563eb;stroke:#1e40af}
.tp .leaf.now.waiting>.box{fill:#b45309;stroke:#7c3a06}
.tp .leaf.now.good>.box{fill:#15803d;stroke:#0f5c2c}
.tp .leaf.now.bad>.box{fill:#b91c1c;stroke:#861414}
.tp .leaf.now>.ring{stroke:#fff}
.tp .leaf.now>text,.tp .leaf.now>.internal>text{fill:#fff}
.tp .count>rect{fill:#1d2433;stroke:#fff}
.tp .count>text{fill:#fff;font-size:11px;font-weight:700}
@media (prefers-color-scheme:dark){
.tp text{fill:#e6eaf1}
.tp .guard,.tp .note,.tp .key{fill:#9aa7bb}
.tp .quiet>text,.tp .quiet>g>text{fill:#a3aec0}
.tp .page{fill:#10141a}
.tp .machine>.box{fill:#171c24;stroke:#2b3442}
.tp .even>.box{fill:#10151c;stroke:#3c4759}
.tp .odd>.box{fill:#1f2630;stroke:#3c4759}
.tp .leaf>.box{fill:#252d39;stroke:#6d7a90}
.tp .leaf.waiting>.box{fill:#3a2c10;stroke:#e0a33a}
.tp .leaf.good>.box{fill:#12301d;stroke:#4fbf77}
.tp .leaf.bad>.box{fill:#3b1a1c;stroke:#f07f7f}
.tp .ring,.tp .line{stroke:#6d7a90}
.tp .leaf.waiting>.ring{stroke:#e0a33a}
.tp .leaf.good>.ring{stroke:#4fbf77}
.tp .leaf.bad>.ring{stroke:#f07f7f}
.tp .divider{stroke:#3c4759}
.tp path.head,.tp .dot{fill:#6d7a90}
.tp .caption>text,.tp .caption>g>text{stroke:#171c24}
.tp .caption.even>text,.tp .caption.even>g>text{stroke:#10151c}
.tp .caption.odd>text,.tp .caption.odd>g>text{stroke:#1f2630}
.tp .back{fill:#171c24}
.tp .back.even{fill:#10151c}
.tp .back.odd{fill:#1f2630}
.tp .visited>.box,.tp .visited>.ring,.tp .visited>.line{stroke:#6ea0ff}
.tp .leaf.visited>.box{fill:#1a2a48;stroke:#6ea0ff}
.tp .leaf.visited.waiting>.box{fill:#3a2c10}
.tp .leaf.visited.good>.box{fill:#12301d}
.tp .leaf.visited.bad>.box{fill:#3b1a1c}
.tp .visited>path.head,.tp .visited>.dot{fill:#6ea0ff}
.tp .visited>.event,.tp .visited>.timer{fill:#a9c6ff}
.tp .internal.visited>.note{fill:#a9c6ff}
.tp .leaf.now>.box{fill:#3b78f0;stroke:#a9c6ff}
.tp .leaf.now.waiting>.box{fill:#b45309;stroke:#f3c274}
.tp .leaf.now.good>.box{fill:#15803d;stroke:#8fe0ab}
.tp .leaf.now.bad>.box{fill:#b91c1c;stroke:#f7b0b0}
.tp .leaf.now>.ring{stroke:#fff}
.tp .leaf.now>text,.tp .leaf.now>.internal>text{fill:#fff}
.tp .count>rect{fill:#e6eaf1;stroke:#10141a}
.tp .count>text{fill:#10141a}
}
`
