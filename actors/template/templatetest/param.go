package templatetest

import (
	"cmp"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"troupe/actors/template/param"
)

// runes are those with a meaning in a declaration, in XML and in a document, and some of more than one byte.
var runes = []rune("aBc019 ._-,()#{}\\$$<>&\"'\u00e9e\u0301\u05d0\u6f22\U0001f600]\t\n")

// Param draws a parameter with a name.
func Param() *rapid.Generator[param.Param] {
	return rapid.Custom(func(t *rapid.T) param.Param {
		part := rapid.StringOfN(rapid.RuneFrom(runes), 0, 10, -1)
		return param.Param{
			Name:    string(rapid.RuneFrom(runes).Draw(t, "first")) + part.Draw(t, "name"),
			Type:    rapid.OneOf(part, rapid.SampledFrom([]string{"", "date", "integer", "choice(A,B,C)", "textarea:3"})).Draw(t, "type"),
			Default: part.Draw(t, "default"),
		}
	})
}

// Filler draws text that declares nothing, wherever it stands outside a declaration.
func Filler() *rapid.Generator[string] {
	return rapid.Map(rapid.StringOfN(rapid.RuneFrom(runes), 0, 6, -1), func(s string) string {
		out := []rune{}
		for _, r := range s {
			if r != '{' {
				out = append(out, r)
			}
		}
		return string(out) + " " // a $ at the end must not meet a {
	})
}

// Distinct returns what a template that declares params, in this order, has.
func Distinct(params []param.Param) []param.Param {
	out := []param.Param{}
	for _, p := range params {
		i := slices.IndexFunc(out, func(old param.Param) bool { return old.Name == p.Name })
		switch {
		case i < 0:
			out = append(out, p)
		case out[i].Type == "" && out[i].Default == "":
			out[i] = p
		}
	}
	slices.SortFunc(out, func(a, b param.Param) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// Scan returns the parameters of one text that comes in parts.
func Scan(limits param.Limits, parts ...string) ([]param.Param, error) {
	list := param.NewCollector(limits)
	s := param.NewScanner(list)
	for _, part := range parts {
		if err := s.Write([]byte(part)); err != nil {
			return nil, err
		}
	}
	if err := s.End(); err != nil {
		return nil, err
	}
	return list.Params(), nil
}

// Short writes parameters as name#type#default, without # at the end.
func Short(params []param.Param) (all []string) {
	for _, p := range params {
		all = append(all, strings.TrimRight(p.Name+"#"+p.Type+"#"+p.Default, "#"))
	}
	return all
}
