package markup

import (
	"bytes"
	"io"
	"strings"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/ianaindex"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"troupe/actors/template/param"
)

const (
	declarationBytesMax = 500  // declarationBytesMax bounds what is between <?xml and ?>
	headBytes           = 1024 // headBytes has all of the XML declaration in it, in 16 bits a character too
)

// marks are the first bytes that tell how wide the units of a text are. Longer ones come first.
var marks = []struct {
	start    string
	encoding encoding.Encoding // nil: UTF-8, or what the declaration says
	drop     int               // bytes of start that are a byte order mark
	refused  string            // the name of an encoding that is refused
	guessed  bool              // without a byte order mark: the declaration must not contradict
}{
	{start: "\x00\x00\xfe\xff", refused: "UTF-32"},
	{start: "\xff\xfe\x00\x00", refused: "UTF-32"},
	{start: "\x00\x00\x00<", refused: "UTF-32"},
	{start: "<\x00\x00\x00", refused: "UTF-32"},
	{start: "\xef\xbb\xbf", drop: 3},
	{start: "\xfe\xff", encoding: utf16BE, drop: 2},
	{start: "\xff\xfe", encoding: utf16LE, drop: 2},
	{start: "\x00<", encoding: utf16BE, guessed: true},
	{start: "<\x00", encoding: utf16LE, guessed: true},
}

var (
	utf16BE = unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)
	utf16LE = unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)
)

// Decode returns the text of r in UTF-8, without a byte order mark. A byte order mark counts for more than the
// declaration; a text without either is UTF-8.
func Decode(r io.Reader) (io.Reader, error) {
	head := make([]byte, headBytes)
	n, err := io.ReadFull(r, head)
	if err != nil && err != io.ErrUnexpectedEOF && err != io.EOF {
		return nil, err
	}
	head = head[:n]
	all := io.MultiReader(bytes.NewReader(head), r)
	for _, m := range marks {
		if !strings.HasPrefix(string(head), m.start) {
			continue
		}
		switch {
		case m.refused != "":
			return nil, param.NotTemplate("the encoding " + m.refused + " is not supported")
		case m.guessed && !wide(declared(dropNUL(head))):
			return nil, param.NotTemplate("declared as 8 bits a character, but they are 16")
		}
		if _, err := io.CopyN(io.Discard, all, int64(m.drop)); err != nil {
			return nil, err
		}
		if m.encoding == nil {
			return all, nil
		}
		return checked(all, m.encoding, "UTF-16"), nil
	}
	return decodeDeclared(all, declared(head))
}

func decodeDeclared(r io.Reader, name string) (io.Reader, error) {
	switch lower := strings.ToLower(name); {
	case lower == "", lower == "utf-8", lower == "utf8":
		return r, nil
	case lower != "utf-7" && wideName(lower):
		return nil, param.NotTemplate("declared as 16 bits a character, but they are 8")
	}
	e, err := ianaindex.IANA.Encoding(name)
	if err != nil || e == nil {
		return nil, param.NotTemplate("the encoding " + param.Quote(name) + " is not supported")
	}
	return checked(r, e, name), nil
}

// So does a text that declares none.
func wide(name string) bool { return name == "" || wideName(strings.ToLower(name)) }

func wideName(lower string) bool {
	return strings.HasPrefix(lower, "utf-16") || lower == "utf16" || lower == "iso-10646-ucs-2" || lower == "unicode"
}

func dropNUL(b []byte) []byte { return bytes.ReplaceAll(b, []byte{0}, nil) }

// declared returns the encoding that the XML declaration at the start of a text names, or "".
func declared(head []byte) string {
	if len(head) < 6 || !bytes.HasPrefix(head, []byte("<?xml")) || !isBlank(head[5]) {
		return ""
	}
	end := bytes.Index(head, []byte("?>"))
	if end < 0 {
		return ""
	}
	_, after, found := bytes.Cut(head[:end], []byte("encoding"))
	after = bytes.TrimLeft(after, " \t\r\n")
	if !found || len(after) == 0 || after[0] != '=' {
		return ""
	}
	after = bytes.TrimLeft(after[1:], " \t\r\n")
	if len(after) == 0 || after[0] != '"' && after[0] != '\'' {
		return ""
	}
	name, _, closed := bytes.Cut(after[1:], after[:1])
	if !closed {
		return ""
	}
	return string(name)
}

// Decoders replace them by U+FFFD, so a template with this character must be UTF-8.
func checked(r io.Reader, e encoding.Encoding, name string) io.Reader {
	return &replacementChecker{r: transform.NewReader(r, e.NewDecoder()), name: name}
}

type replacementChecker struct {
	r    io.Reader
	name string
	tail []byte // tail has the last bytes of the read before, which may begin a U+FFFD
}

const replacement = "\uFFFD"

func (c *replacementChecker) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	seam := append(c.tail, p[:min(n, len(replacement)-1)]...)
	if bytes.Contains(p[:n], []byte(replacement)) || bytes.Contains(seam, []byte(replacement)) {
		return 0, param.NotTemplate("there are bytes that are not " + param.Quote(c.name))
	}
	if n >= len(replacement)-1 {
		seam = p[n-(len(replacement)-1) : n]
	}
	c.tail = append(c.tail[:0], seam[max(0, len(seam)-(len(replacement)-1)):]...)
	return n, err
}
