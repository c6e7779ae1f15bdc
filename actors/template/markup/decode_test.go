package markup

import (
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/unicode"

	"troupe/actors/template/param"
)

func encoded(t *testing.T, e encoding.Encoding, text string) string {
	t.Helper()
	out, err := e.NewEncoder().String(text)
	require.NoError(t, err)
	return out
}

func TestEncodings(t *testing.T) {
	le, be := unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM), unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)
	declare := func(name string) string { return "<?xml version=\"1.0\" encoding=\"" + name + "\"?>" }
	const body = "<a>\u00e9\u00fc</a>"
	tests := []struct {
		rule, text string
		want       string // the text of the element, or the reason of the fault
	}{
		{"UTF-8 without anything", body, "\u00e9\u00fc"},
		{"UTF-8 with a mark", "\ufeff" + body, "\u00e9\u00fc"},
		{"UTF-8 declared", declare("utf-8") + body, "\u00e9\u00fc"},
		{"UTF-8 with a mark, declared as something else: the mark counts", "\ufeff" + declare("ISO-8859-1") + body, "\u00e9\u00fc"},
		{"UTF-16 LE with a mark", "\xff\xfe" + encoded(t, le, body), "\u00e9\u00fc"},
		{"UTF-16 BE with a mark", "\xfe\xff" + encoded(t, be, body), "\u00e9\u00fc"},
		{"UTF-16 with a mark, declared", "\xff\xfe" + encoded(t, le, declare("UTF-16")+body), "\u00e9\u00fc"},
		{"UTF-16 with a mark, declared as something else: the mark counts", "\xfe\xff" + encoded(t, be, declare("UTF-8")+body), "\u00e9\u00fc"},
		{"UTF-16 LE without a mark", encoded(t, le, declare("UTF-16LE")+body), "\u00e9\u00fc"},
		{"UTF-16 BE without a mark", encoded(t, be, declare("UTF-16")+body), "\u00e9\u00fc"},
		{"UTF-16 without mark and declaration", encoded(t, be, body), "\u00e9\u00fc"},
		{"UTF-16 without a mark, declared as 8 bits", encoded(t, le, declare("UTF-8")+body), "declared as 8 bits"},
		{"8 bits, declared as UTF-16", declare("UTF-16") + body, "declared as 16 bits"},
		{"beyond 16 bits", "\xff\xfe" + encoded(t, le, "<a>\U0001f600</a>"), "\U0001f600"},
		{"half a pair in UTF-16", "\xff\xfe" + encoded(t, le, "<a>") + "\x00\xd8" + encoded(t, le, "</a>"), `there are bytes that are not "UTF-16"`},
		{"an odd byte in UTF-16", "\xff\xfe" + encoded(t, le, "<a/>") + " ", `there are bytes that are not "UTF-16"`},
		{"UTF-32", "\xff\xfe\x00\x00<\x00\x00\x00", "UTF-32 is not supported"},
		{"ISO-8859-1", declare("ISO-8859-1") + encoded(t, charmap.ISO8859_1, body), "\u00e9\u00fc"},
		{"ISO-8859-1 is not windows-1252", declare("iso-8859-1") + "<a>\x80</a>", "\u0080"},
		{"ISO-8859-15", declare("ISO-8859-15") + "<a>\xa4</a>", "\u20ac"},
		{"windows-1252", declare("windows-1252") + "<a>\x80</a>", "\u20ac"},
		{"windows-1252, single quotes and blanks", "<?xml version='1.0' encoding = 'Windows-1252' ?><a>\x80</a>", "\u20ac"},
		{"windows-1252 without the byte", declare("windows-1252") + "<a>\x81</a>", `there are bytes that are not "windows-1252"`},
		{"windows-1251", declare("windows-1251") + encoded(t, charmap.Windows1251, "<a>\u0416</a>"), "\u0416"},
		{"Shift_JIS", declare("Shift_JIS") + encoded(t, japanese.ShiftJIS, "<a>\u6f22</a>"), "\u6f22"},
		{"Shift_JIS, half a character", declare("Shift_JIS") + "<a>\x8a</a>", `there are bytes that are not "Shift_JIS"`},
		{"US-ASCII", declare("US-ASCII") + "<a>b</a>", "b"},
		{"UTF-7", declare("UTF-7") + "<a>b</a>", `the encoding "UTF-7" is not supported`},
		{"an unknown encoding", declare("x-y") + "<a>b</a>", `the encoding "x-y" is not supported`},
		{"UTF-8 declared as nothing, other bytes", "<a>\xe9</a>", "bytes that are not UTF-8"},
		{"a declaration that does not end", "<?xml version='1.0' encoding='ISO-8859-1", "ends inside the XML declaration"},
		{"a declaration that is too long to be looked for", "<?xml version=\"1.0\"" + strings.Repeat(" ", 1100) + "encoding=\"ISO-8859-1\"?><a>\xe9</a>", "an XML declaration of more than 500 bytes"},
		{"the longest declaration", "<?xml version=\"1.0\"" + strings.Repeat(" ", 500-len(` version="1.0"encoding="ISO-8859-1"`)) + "encoding=\"ISO-8859-1\"?><a>\xe9</a>", "\u00e9"},
		{"an instruction is no declaration", "<?xml-stylesheet encoding=\"ISO-8859-1\"?><a>\u00e9</a>", "\u00e9"},
		{"a name in the version", "<?xml version='encoding' ?><a>b</a>", "none of XML 1"},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			for name, r := range readers(test.text) {
				got, err := decodedText(r)
				if err != nil && errors.Is(err, param.ErrNotTemplate) {
					if got = err.Error(); strings.Contains(got, test.want) {
						continue
					}
				}
				assert.Equal(t, test.want, got, "%v %v", name, err)
			}
		})
	}
}

func decodedText(r io.Reader) (text string, err error) {
	lines, err := events(r, param.Limits{})
	for _, line := range lines {
		if quoted, ok := strings.CutPrefix(line, "text "); ok {
			plain, err := strconv.Unquote(quoted)
			if err != nil {
				return "", err
			}
			text += plain
		}
	}
	return text, err
}

// TestReplacementAcrossReads: a U+FFFD that two reads share is found as well.
func TestReplacementAcrossReads(t *testing.T) {
	for n := range 6 {
		text := strings.Repeat("x", n) + "\xff\xfd" + "yz"
		c := &replacementChecker{r: iotest.OneByteReader(strings.NewReader(strings.ReplaceAll(text, "\xff\xfd", replacement))), name: "x"}
		_, err := io.ReadAll(c)
		assert.ErrorIs(t, err, param.ErrNotTemplate, "after %d bytes", n)
	}
	c := &replacementChecker{r: iotest.OneByteReader(strings.NewReader("\u00ef\u00bf\u00bd\uffff\uffef")), name: "x"}
	got, err := io.ReadAll(c)
	assert.True(t, err == nil && slices.Equal(got, []byte("\u00ef\u00bf\u00bd\uffff\uffef")), "got %q, %v; want all of it", got, err)
}
