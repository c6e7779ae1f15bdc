package script

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"troupe/statemachine"
	"troupe/statemachine/data"
	"troupe/statemachine/document"
)

// Difference is one place where an instance is not as expected.
type Difference struct {
	Line     int    `json:"line"` // of the expectation
	Path     string `json:"path"` // what differs, such as svcPublic.total
	Expected string `json:"expected"`
	Found    string `json:"found"`
}

// String is the difference on one line.
func (d Difference) String() string {
	return fmt.Sprintf("%s: expected %s, found %s", d.Path, d.Expected, d.Found)
}

// The matchers. A mapping of nothing else is one.
const (
	contains = "contains"
	matches  = "matches"
	oneOf    = "oneOf"
	absent   = "absent"
)

var matchers = []string{contains, matches, oneOf, absent}

func isMatcher(n *document.Node) bool {
	return n.Kind == document.Mapping && len(n.Fields) > 0 &&
		!slices.ContainsFunc(n.Fields, func(f document.Field) bool { return !slices.Contains(matchers, f.Key.Text) })
}

// comparison collects how values differ from what is expected of them: objects as subsets, lists whole.
type comparison struct {
	now time.Time // durations count from it
	out []Difference
}

func (c *comparison) differ(at *document.Node, path, expected, found string) {
	c.out = append(c.out, Difference{at.Line, path, expected, found})
}

func (c *comparison) value(path string, want *document.Node, got data.Value) {
	switch {
	case isMatcher(want):
		c.matcher(path, want, got, (*comparison).value)
	case want.Kind == document.Mapping && got.Kind() == data.Object:
		for _, f := range want.Fields {
			member, _ := got.Lookup(f.Key.Text)
			c.value(path+"."+f.Key.Text, f.Value, member)
		}
	case want.Kind == document.Sequence && got.Kind() == data.Array:
		c.list(path, want, got, c.value)
	default:
		c.scalar(path, want, got)
	}
}

func (c *comparison) scalar(path string, want *document.Node, got data.Value) {
	if expected := valueOf(want); !data.Equal(expected, got) {
		if expected.Kind() == data.String && got.Kind() == data.String && len(expected) > maxShown && len(got) > maxShown {
			expected, got = fromDifference(expected.Text(), got.Text())
		}
		c.differ(want, path, shown(expected), shown(got))
	}
}

// fromDifference cuts off what two long texts have in common at the front, but for some words.
func fromDifference(a, b string) (data.Value, data.Value) {
	const kept = 20
	first := 0
	for first < min(len(a), len(b)) && a[first] == b[first] {
		first++
	}
	if first < kept {
		return data.AppendString(nil, a), data.AppendString(nil, b)
	}
	cut := func(s string) data.Value {
		return data.AppendString(nil, "…"+strings.ToValidUTF8(s[first-kept:], ""))
	}
	return cut(a), cut(b)
}

// items compares with a list of what happened or waits.
func (c *comparison) items(path string, want *document.Node, got data.Value) {
	switch {
	case isMatcher(want):
		c.matcher(path, want, got, (*comparison).item)
	case want.Kind == document.Sequence:
		c.list(path, want, got, c.item)
	default:
		c.scalar(path, want, got)
	}
}

// list compares two lists element by element.
func (c *comparison) list(path string, want *document.Node, got data.Value, element func(string, *document.Node, data.Value)) {
	n := 0
	for i, found := range got.Elements() {
		at := path + "[" + strconv.Itoa(i) + "]"
		if n++; i < len(want.Items) {
			element(at, want.Items[i], found)
		} else {
			c.differ(want, at, "nothing more", shown(found))
		}
	}
	for i := n; i < len(want.Items); i++ {
		c.differ(want.Items[i], path+"["+strconv.Itoa(i)+"]", shown(valueOf(want.Items[i])), "nothing")
	}
}

// item compares with what happened or waits: a text stands for the first member, which names it.
func (c *comparison) item(path string, want *document.Node, got data.Value) {
	if want.Kind == document.String || isMatcher(want) {
		for name, member := range got.Members() {
			c.value(path+"."+name, want, member)
			return
		}
	}
	if want.Kind != document.Mapping {
		c.scalar(path, want, got)
		return
	}
	for _, f := range want.Fields {
		at, member := path+"."+f.Key.Text, data.Value(nil)
		member, _ = got.Lookup(f.Key.Text)
		switch f.Key.Text {
		case "for":
			c.set(at, f.Value, member)
		case "due":
			c.due(at, f.Value, member)
		default:
			c.value(at, f.Value, member)
		}
	}
}

// set compares two lists of texts whose order does not count.
func (c *comparison) set(path string, want *document.Node, got data.Value) {
	if isMatcher(want) || want.Kind != document.Sequence {
		c.value(path, want, got)
		return
	}
	expected, found := map[string]bool{}, map[string]bool{}
	for _, item := range want.Items {
		expected[item.Text] = true
	}
	for _, item := range got.Elements() {
		found[item.Text()] = true
	}
	if !maps.Equal(expected, found) {
		c.differ(want, path, strings.Join(slices.Sorted(maps.Keys(expected)), ", "), orNobody(slices.Sorted(maps.Keys(found))))
	}
}

func orNobody(names []string) string {
	if len(names) == 0 {
		return "nobody"
	}
	return strings.Join(names, ", ")
}

// due compares a time with a time, or with how far away it is.
func (c *comparison) due(path string, want *document.Node, got data.Value) {
	at, err := time.Parse(time.RFC3339, got.Text())
	if want.Kind == document.String && err == nil {
		if in, err := statemachine.ParseDelay(want.Text); err == nil {
			if left := at.Sub(c.now); left != in {
				c.differ(want, path, "in "+want.Text, "in "+delayText(left))
			}
			return
		}
		if other, err := time.Parse(time.RFC3339, want.Text); err == nil {
			if !at.Equal(other) {
				c.differ(want, path, want.Text, got.Text())
			}
			return
		}
	}
	c.value(path, want, got)
}

// delayText is a duration as files write it.
func delayText(d time.Duration) string {
	text, rest := "P", max(d, -d)
	if d < 0 {
		text = "-P"
	}
	unit := func(of time.Duration, name string) {
		if n := int64(rest / of); n > 0 {
			text += strconv.FormatInt(n, 10) + name
		}
		rest %= of
	}
	unit(24*time.Hour, "D")
	if rest == 0 && d != 0 {
		return text
	}
	text += "T"
	unit(time.Hour, "H")
	unit(time.Minute, "M")
	if rest > 0 || d == 0 {
		text += strconv.FormatFloat(rest.Seconds(), 'f', -1, 64) + "S"
	}
	return text
}

// compare is a method of a comparison that looks at one value.
type compare func(c *comparison, path string, want *document.Node, got data.Value)

func (c *comparison) matcher(path string, want *document.Node, got data.Value, inside compare) {
	for _, f := range want.Fields {
		if !c.matches(f, got, inside) {
			expected := f.Key.Text + " " + shown(valueOf(f.Value))
			switch {
			case f.Key.Text == absent && isTrue(f.Value):
				expected = "nothing"
			case f.Key.Text == absent:
				expected = "something"
			case f.Key.Text == oneOf:
				expected = "one of " + shown(valueOf(f.Value))
			}
			c.differ(f.Value, path, expected, shown(got))
		}
	}
}

func isTrue(n *document.Node) bool {
	return n.Kind == document.Bool && strings.EqualFold(n.Text, "true")
}

func (c *comparison) matches(f document.Field, got data.Value, inside compare) bool {
	fits := func(want *document.Node, got data.Value) bool {
		try := comparison{now: c.now}
		inside(&try, "", want, got)
		return len(try.out) == 0
	}
	switch f.Key.Text {
	case absent:
		return isTrue(f.Value) == (got.Kind() == data.Absent)
	case matches:
		pattern, err := regexp.Compile(f.Value.Text) // the parser has refused others
		return err == nil && got.Kind() == data.String && pattern.MatchString(got.Text())
	case oneOf:
		return slices.ContainsFunc(f.Value.Items, func(want *document.Node) bool { return fits(want, got) })
	}
	if got.Kind() == data.String {
		return f.Value.Kind == document.String && strings.Contains(got.Text(), f.Value.Text)
	}
	for _, element := range got.Elements() {
		if fits(f.Value, element) {
			return true
		}
	}
	return false
}

// valueOf is the JSON of a part of a file.
func valueOf(n *document.Node) data.Value {
	v, err := n.Data()
	if err != nil {
		panic(err) // Parse has made it
	}
	return v
}

const maxShown = 120

// shown is a value in a message.
func shown(v data.Value) string {
	if v.Kind() == data.Absent {
		return "nothing"
	}
	if text := []rune(v.String()); len(text) > maxShown {
		return string(text[:maxShown-1]) + "…"
	}
	return v.String()
}
