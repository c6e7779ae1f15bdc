package reference

import (
	"html"
	"regexp"
	"strings"

	"troupe/gateway/hypertext"
)

var (
	code   = regexp.MustCompile("`([^`]+)`")
	strong = regexp.MustCompile(`\*\*([^*]+)\*\*`)
)

// prose returns a text of the description as HTML: paragraphs and lists, a blank
// line between them, with `code` and **strong** in them.
func prose(text string) hypertext.Raw {
	var b strings.Builder
	for block := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		switch {
		case block == "":
		case strings.HasPrefix(block, "- "):
			b.WriteString("<ul>")
			for item := range strings.SplitSeq(block[len("- "):], "\n- ") {
				b.WriteString("<li>" + inline(item) + "</li>")
			}
			b.WriteString("</ul>\n")
		default:
			b.WriteString("<p>" + inline(block) + "</p>\n")
		}
	}
	return hypertext.Raw(b.String()) // inline has escaped it
}

func inline(text string) string {
	text = html.EscapeString(strings.TrimSpace(text))
	// NB: what stands between backticks is cut out first, so that its stars stay.
	var b strings.Builder
	for text != "" {
		at := code.FindStringSubmatchIndex(text)
		if at == nil {
			break
		}
		b.WriteString(strong.ReplaceAllString(text[:at[0]], "<strong>$1</strong>") + "<code>" + text[at[2]:at[3]] + "</code>")
		text = text[at[1]:]
	}
	return b.String() + strong.ReplaceAllString(text, "<strong>$1</strong>")
}
