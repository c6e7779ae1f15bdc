//go:build differential

package filter

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestDifferential asks two other readers of the language, mingo and sift, the same questions. Neither is right alone, so every
// difference must be one of knownDifferences; and one of those that nothing needs is out of date.
//
// It needs node, and the packages in the folder differential; .ci/differential installs them and runs it.
func TestDifferential(t *testing.T) {
	asked := askPartners(t)
	needed, alike, unexplained := map[string]int{}, map[string]int{}, 0
	for _, q := range asked {
		ours := q.parse(t).Match(q.document())
		for _, partner := range partners {
			if q.answers[partner] == ours {
				alike[partner]++
				continue
			}
			known := q.explain(partner)
			if len(known) == 1 {
				needed[known[0].title()]++
			}
			if len(known) > 0 {
				continue
			}
			if unexplained++; unexplained <= 20 {
				t.Errorf("%s says %v, we say %v, and no known difference explains it:\n%s\n%s", partner, q.answers[partner], ours, q.Filter, q.text())
			}
		}
	}
	assert.Zero(t, unexplained, "differences are not explained, of which 20 are shown")
	for _, d := range knownDifferences {
		t.Logf("%6d alone explained by: %s (%s)", needed[d.title()], d.title(), d.rule)
		assert.NotZero(t, needed[d.title()], "no difference needs %q to be explained: it is out of date", d.title())
	}
	for _, partner := range partners {
		t.Logf("of %d questions %s answers %d like us", len(asked), partner, alike[partner])
		assert.True(t, alike[partner] >= len(asked)*3/4 && alike[partner] < len(asked), "%s answers %d of %d questions like us, want most and not all", partner, alike[partner], len(asked))
	}
}

var partners = []string{"mingo", "sift"}

// answered is a question with what the partners answer: true, false, or a text when one refuses the filter.
type answered struct {
	question
	answers map[string]any
}

func (d difference) title() string { return d.partner + ": " + d.name }

// partnerQuestion is the question of a seed. JavaScript rounds numbers and forgets how they were spelled, so most questions
// have only numbers that it holds.
func partnerQuestion(seed int) question {
	q := questions().Example(seed)
	if seed%5 == 0 {
		return q
	}
	for _, text := range []*string{&q.Filter, &q.Public, &q.States, &q.History} {
		*text = encode(tame(decode(*text)), false)
	}
	return q
}

// tame replaces what JavaScript does not hold, and long texts.
func tame(v any) any {
	switch x := v.(type) {
	case object:
		for i := range x {
			x[i].value = tame(x[i].value)
		}
	case list:
		for i := range x {
			x[i] = tame(x[i])
		}
	case number:
		if roundedInJavaScript(x) {
			return number(map[bool]string{true: "1", false: "5"}[len(x) < 10])
		}
	case string:
		return strings.Replace(x, longText[:300], "xx", 1)
	}
	return v
}

func askPartners(t *testing.T) []answered {
	t.Helper()
	asked := make([]answered, 24_000)
	var in, faults bytes.Buffer
	for seed := range asked {
		asked[seed].question = partnerQuestion(seed)
		fmt.Fprintf(&in, `{"filter":%s,"document":%s}`+"\n", asked[seed].Filter, asked[seed].text())
	}
	command := exec.Command("node", "differential/verdicts.mjs")
	command.Stdin, command.Stderr = &in, &faults
	out, err := command.Output()
	require.NoError(t, err, "node: %s", faults.Bytes())
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	require.Len(t, lines, len(asked), "answers")
	for seed, line := range lines {
		require.NoError(t, json.Unmarshal(line, &asked[seed].answers), "%s", line)
	}
	return asked
}

func (q question) explain(partner string) (known []difference) {
	asked := asked(decode(q.Filter).(object), q.decoded())
	for _, d := range knownDifferences {
		if d.partner == partner && slices.ContainsFunc(asked, d.applies) {
			known = append(known, d)
		}
	}
	return known
}

// ask is one operator on one path in one document, which may be an element that $elemMatch looks at.
type ask struct {
	operator string
	operand  any
	path     []string
	document any
	// itself says that the document is asked about itself, without a path.
	itself bool
}

func asked(filter object, document any) (all []ask) {
	for _, m := range filter {
		key := m.key.(string)
		if strings.HasPrefix(key, "$") {
			for _, f := range m.value.(list) {
				all = append(all, asked(f.(object), document)...)
			}
			continue
		}
		path := strings.Split(key, ".")
		if ops, ok := operators(m.value); ok {
			all = append(all, askedOf(ops, path, document, false)...)
		} else {
			all = append(all, ask{"$eq", m.value, path, document, false})
		}
	}
	return all
}

func askedOf(ops object, path []string, document any, itself bool) (all []ask) {
	for _, m := range ops {
		operator := m.key.(string)
		all = append(all, ask{operator, m.value, path, document, itself})
		switch operator {
		case "$not":
			all = append(all, askedOf(m.value.(object), path, document, itself)...)
		case "$all":
			for _, e := range m.value.(list) {
				if inner, ok := operators(e); ok {
					all = append(all, askedOf(inner, path, document, itself)...)
				}
			}
		case "$elemMatch":
			inner := m.value.(object)
			elements := []any{missing{}}
			for _, v := range (ask{path: path, document: document, itself: itself}).reached(true) {
				if l, ok := v.(list); ok {
					elements = append(elements, l...)
				}
			}
			for _, e := range elements {
				if ofValues(inner) {
					all = append(all, askedOf(inner, nil, e, true)...)
				} else {
					all = append(all, asked(inner, e)...)
				}
			}
		}
	}
	return all
}

func (a ask) reached(whole bool) []any {
	if a.itself {
		return []any{a.document}
	}
	document := a.document
	if l, ok := document.(list); ok {
		keyed := object{}
		for i, e := range l {
			keyed = append(keyed, member{fmt.Sprint(i), e})
		}
		document = keyed
	}
	return oracle{}.reach(document, a.path, whole)
}
