package gateway_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"troupe/gateway/hypertext"
)

func TestPut(t *testing.T) {
	var w hypertext.Writer
	w.Put(`<a title="%s">%s</a>`, `" onclick="x`, "<b>&")
	w.Put("%s%d%.1f", hypertext.Raw("<br>"), 3, 0.25)
	w.Put("%v %v", errors.New("<e>"), time.Duration(0))
	assert.Equal(t, `<a title="&#34; onclick=&#34;x">&lt;b&gt;&amp;</a><br>30.2&lt;e&gt; 0s`, string(w.Raw()))
}

// named is a text of another type, as names of methods and statuses are.
type named string

func TestPutEscapesNamedTexts(t *testing.T) {
	var w hypertext.Writer
	w.Put("%s", named("<b>"))
	assert.Equal(t, "&lt;b&gt;", string(w.Raw()))
}

// FuzzPut: no value makes a tag, whatever its type.
func FuzzPut(f *testing.F) {
	f.Add("<script>alert(1)</script>")
	f.Add(`'"<`)
	f.Fuzz(func(t *testing.T, text string) {
		var w hypertext.Writer
		w.Put("%s", text)
		w.Put("%v", errors.New(text))
		got := string(w.Raw())
		assert.False(t, strings.ContainsAny(got, `<>"'`), "%q is written as %q", text, got)
	})
}
