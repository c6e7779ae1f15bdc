package param

import (
	"bytes"
	"maps"
	"slices"
	"strings"
)

// Param is a parameter of a template.
type Param struct {
	// Name is never empty. It may hold any character.
	Name    string `json:"name"`
	Type    string `json:"type"`
	Default string `json:"defaultValue"`
}

// Declaration returns the parameter as a template declares it, in the shortest form that means the same.
func (p Param) Declaration() string {
	text := "${" + escape(p.Name)
	if !p.bare() {
		text += "#" + escape(p.Type)
	}
	if p.Default != "" {
		text += "#" + escape(p.Default)
	}
	return text + "}"
}

var escape = strings.NewReplacer(`#`, `\#`, `{`, `\{`, `}`, `\}`, `\`, `\\`).Replace

func (p Param) bare() bool { return p.Type == "" && p.Default == "" }

// Collector keeps one Param for each name: the first that has a type or a default, else the first.
type Collector struct {
	limits       Limits
	params       map[string]Param
	declarations int
	nameBytes    int64
	resultBytes  int64
	text         []byte // scratch: a name without its escapes
}

// NewCollector returns an empty list.
func NewCollector(limits Limits) *Collector {
	return &Collector{limits: limits.WithDefaults(), params: map[string]Param{}}
}

// A declaration without a name is not a parameter.
func (c *Collector) add(name, typ, def []byte) error {
	if len(name) == 0 {
		return nil
	}
	c.declarations++
	c.nameBytes += int64(len(name))
	switch {
	case c.declarations > c.limits.Declarations:
		return TooLarge(int64(c.limits.Declarations), "declarations of parameters")
	case c.nameBytes > c.limits.NameBytes:
		return TooLarge(c.limits.NameBytes, "bytes of names of parameters")
	}
	if bytes.IndexByte(name, '\\') >= 0 {
		c.text = appendUnescaped(c.text[:0], name)
		name = c.text
	}
	old, known := c.params[string(name)]
	switch {
	case !known:
		return c.put(Param{string(name), unescape(typ), unescape(def)})
	case old.bare() && len(typ)+len(def) > 0:
		// put counts the name again; the limit is far above the difference.
		return c.put(Param{old.Name, unescape(typ), unescape(def)})
	}
	return nil
}

func (c *Collector) put(p Param) error {
	c.params[p.Name] = p
	c.resultBytes += int64(len(p.Name) + len(p.Type) + len(p.Default))
	switch {
	case len(c.params) > c.limits.Parameters:
		return TooLarge(int64(c.limits.Parameters), "parameters")
	case c.resultBytes > c.limits.ResultBytes:
		return TooLarge(c.limits.ResultBytes, "bytes of names, types and defaults of parameters")
	}
	return nil
}

// Params returns the parameters, ascending by name, by code point. The result is never nil, and the caller owns it.
func (c *Collector) Params() []Param {
	out := make([]Param, 0, len(c.params))
	for _, name := range slices.Sorted(maps.Keys(c.params)) {
		// The order of the bytes of UTF-8 is that of the code points.
		out = append(out, c.params[name])
	}
	return out
}

func unescape(s []byte) string {
	if bytes.IndexByte(s, '\\') < 0 {
		return string(s)
	}
	return string(appendUnescaped(make([]byte, 0, len(s)), s))
}

func appendUnescaped(out, s []byte) []byte {
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && isEscapable(s[i+1]) {
			i++
		}
		out = append(out, s[i])
	}
	return out
}

// Before anything else a backslash stands for itself.
func isEscapable(b byte) bool { return b == '#' || b == '{' || b == '}' || b == '\\' }
