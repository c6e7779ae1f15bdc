package filter

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"troupe/statemachine/cputest"
	"troupe/statemachine/data"
)

func TestMatchAgreesWithTheOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := questions().Draw(t, "question")
		require.Equal(t, (oracle{}).match(decode(q.Filter), q.decoded()), q.parse(t).Match(q.document()), "%s matches %+v", q.Filter, q)
	})
}

var oracleBugs = map[string]oracle{
	"arrays at a position are expanded":      {expandPositions: true},
	"scalars in arrays give missing":         {missingInArrays: true},
	"the order of members is ignored":        {unordered: true},
	"numbers are rounded":                    {floats: true},
	"comparisons leave their kind":           {crossKinds: true},
	"a negation is of each element":          {negateEach: true},
	"missing is not null":                    {missingIsNotNull: true},
	"scalars are documents for $elemMatch":   {scalarDocuments: true},
	"$size looks at the elements of a value": {elementsHaveSize: true},
}

// TestTheOracleTellsBugs is the control: an oracle with a bug disagrees with
// the matcher somewhere, so a matcher with that bug would be found.
func TestTheOracleTellsBugs(t *testing.T) {
	const tries = 10_000
	drawn, found, matches, asked := questions(), map[string]bool{}, 0, 0
	for ; asked < tries && len(found) < len(oracleBugs); asked++ {
		q := drawn.Example(asked)
		got := q.parse(t).Match(q.document())
		if got {
			matches++
		}
		filter, doc := decode(q.Filter), q.decoded()
		require.Equal(t, (oracle{}).match(filter, doc), got, "%s matches %+v", q.Filter, q)
		for name, o := range oracleBugs {
			if !found[name] && o.match(filter, doc) != got {
				found[name] = true
			}
		}
	}
	for name := range oracleBugs {
		assert.True(t, found[name], "bug %q is not found in %d tries, want it found", name, tries)
	}
	assert.True(t, matches >= asked/20 && matches <= asked*19/20, "%d of %d questions match, want some of both", matches, asked)
}

var indexPaths = []string{
	"svcPublic.a", "svcPublic.b", "svcPublic.0", "svcPublic.a.a", "svcPublic.a.b", "svcPublic.b.a", "svcPublic.a.0", "svcPublic.a.1",
	"svcPublic.0.a", "svcPublic.a.a.a", "svcPublic.a.0.a", "svcPublic.a.a.0", "svcPrivate.a",
}

func mustField(t interface{ Fatalf(string, ...any) }, text string) *Field {
	path, err := data.ParsePath(text)
	if err != nil {
		t.Fatalf("ParsePath(%s): %v", text, err)
	}
	field, err := ParseField(path)
	if err != nil {
		t.Fatalf("ParseField(%s): %v", text, err)
	}
	return field
}

func (r Range) contains(key []byte) bool {
	if r.Point {
		return bytes.Equal(key, r.From)
	}
	return bytes.Compare(key, r.From) >= 0 && (r.To == nil || bytes.Compare(key, r.To) < 0)
}

func show(ranges []Range) string {
	var parts []string
	for _, r := range ranges {
		if r.Point {
			parts = append(parts, fmt.Sprintf("%x", r.From))
		} else {
			parts = append(parts, fmt.Sprintf("%x..%x", r.From, r.To))
		}
	}
	return strings.Join(parts, " ")
}

// indexFault says what an index with the given keys would get wrong about a question whose filter matches; "": nothing. used
// says whether the filter says anything about the field.
func indexFault(f *Filter, field *Field, keys [][]byte) (fault string, used bool) {
	ranges, ok := f.Bounds(field, len(keys) == 1) // NB: with one key, all conditions hold by it
	if !ok {
		return "", false
	}
	for i, r := range ranges {
		if i > 0 && (ranges[i-1].To == nil && !ranges[i-1].Point || bytes.Compare(ranges[i-1].From, r.From) >= 0 || bytes.Compare(ranges[i-1].To, r.From) > 0) {
			return fmt.Sprintf("the ranges are not sorted and disjoint: %s", show(ranges)), true
		}
		if slices.ContainsFunc(keys, r.contains) {
			return "", true
		}
	}
	return fmt.Sprintf("no key of %x is in %s", keys, show(ranges)), true
}

// TestIndexesFindEveryMatch: what matches is in each superset that the filter tells the planner.
func TestIndexesFindEveryMatch(t *testing.T) {
	said := 0
	for seed := range 500 { // NB: these are the same in every run
		q := questions().Example(seed)
		if f := q.parse(t); f.Match(q.document()) {
			if _, used := indexFault(f, mustField(t, "svcPublic.a"), mustField(t, "svcPublic.a").Keys(q.document())); used {
				said++
			}
		}
	}
	assert.NotZero(t, said, "no bounds say anything: the test tests nothing")
	rapid.Check(t, func(t *rapid.T) {
		q := questions().Draw(t, "question")
		f, d := q.parse(t), q.document()
		if !f.Match(d) {
			return
		}
		for _, path := range indexPaths {
			field := mustField(t, path)
			keys := field.Keys(d)
			fault, _ := indexFault(f, field, keys)
			require.Empty(t, fault, "%s matches %+v, but on %s", q.Filter, q, path)
			require.True(t, len(keys) != 0 && slices.IsSortedFunc(keys, bytes.Compare) && len(slices.CompactFunc(slices.Clone(keys), bytes.Equal)) == len(keys),
				"the keys of %+v on %s are %x, want at least one, sorted, each once", q, path, keys)
		}
		ids, ok := f.IDs()
		require.False(t, ok && !slices.Contains(ids, d.ID), "%s matches %s, but IDs are %q", q.Filter, d.ID, ids)
		for _, p := range f.Positions() {
			require.False(t, isReal(q.States) && !isIn(p, q.States), "%s matches %s, but Positions has %+v", q.Filter, q.States, p)
		}
		for i, branches := range f.Alternatives() {
			require.True(t, slices.ContainsFunc(branches, func(b *Filter) bool { return b.Match(d) }), "%s matches %+v, but no branch of $or %d does", q.Filter, q, i)
		}
		require.False(t, readsHistory(f, d) && !f.UsesHistory(), "%s reads the history, but UsesHistory says no", q.Filter)
	})
}

// isReal reports whether states are such as instances have.
func isReal(states string) bool { return strings.HasPrefix(states, `[{"stateMachineId":`) }

func isIn(p Positions, states string) bool {
	for _, s := range data.Value(states).Elements() {
		machine, _ := s.Lookup("stateMachineId")
		node, _ := s.Lookup("nodeId")
		if slices.Contains(p.Nodes, node.Text()) && (p.Machine == "" || machine.TextIs(p.Machine)) {
			return true
		}
	}
	return false
}

func readsHistory(f *Filter, d Document) (called bool) {
	d.History = func() data.Value { called = true; return nil }
	f.Match(d)
	return called
}

// FuzzParse gives Parse any text, and what it takes to Match, and holds the two against the oracle.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		`{"states.nodeId":"review"}`, `{"svcPublic.a.0":{"$oid":"x"},"_id":null}`, `{"$and":[{}]}`, `{"a":{"$gt":1}}`,
		`{"svcHistory":[{"x":1e400}]}`, `{"svcPublic..a":1}`, "", `{"svcPublic.a":{"b":{"\u0024oid":"\ud83d\ude00"}}}`,
		`{"svcPublic.a":{"$elemMatch":{"b":{"$gt":1,"$lte":1e3}}}}`, `{"svcPublic.a":{"$all":[{"$elemMatch":{"$in":[1,"x"]}}]}}`,
		`{"svcPublic.a.b":{"$not":{"$regex":"^x(a{9}){9}","$options":"is"}}}`, `{"$nor":[{"svcPublic.a":{"$type":["int",2]}},{"_id":{"$in":["i",7]}}]}`,
		`{"svcPublic.a":{"$mod":[2,0.5],"$size":2,"$bitsAnySet":[1,70],"$exists":false}}`, `{"$comment":1,"states":{"$elemMatch":{"nodeId":"a"}}}`,
		`{"svcPublic.a":{"$ne":null,"$nin":[[],{}]},"$or":[{"svcPublic.a.1":{"$lt":[0]}},{}]}`,
	} {
		f.Add([]byte(s))
	}
	document := question{Public: `{"a":[{"b":[1,null,{"c":"x"}]},[[]],2.5]}`, States: `[{"stateMachineId":"m","nodeId":"a"}]`, History: `[{"user":"x"}]`}
	decoded := document.decoded()
	f.Fuzz(func(t *testing.T, src []byte) {
		watched := cputest.Watch()
		defer func() {
			assert.LessOrEqual(t, watched(), 10*time.Second, "%q takes", src)
		}()
		filter, err := Parse(src, Options{})
		if err != nil {
			known := []error{ErrSyntax, ErrUnsupported, ErrRoot, ErrTooLarge}
			require.True(t, slices.ContainsFunc(known, func(k error) bool { return errors.Is(err, k) }), "Parse(%q): %v, want one of %v", src, err, known)
			return
		}
		checkNodes(t, filter.all, 0)
		got := filter.Match(document.document())
		filter.Match(Document{})
		filter.Positions()
		filter.IDs()
		for _, path := range []string{"svcPublic.a", "svcPublic.a.b", "svcPublic.a.0"} {
			field := mustField(t, path)
			fault, _ := indexFault(filter, field, field.Keys(document.document()))
			require.False(t, got && fault != "", "%s: on %s %s", src, path, fault)
		}
		if len(src) == 0 || bytes.Contains(src, []byte("oid")) || hugeExponent.Match(src) {
			return // what the oracle does not know
		}
		require.Equal(t, (oracle{}).match(decode(string(src)), decoded), got, "%s matches", src)
	})
}

// hugeExponent is an exponent of four digits or more, which the oracle cannot hold.
var hugeExponent = regexp.MustCompile(`(?i)e[-+0]*[0-9]{4}`)

// checkNodes holds what Parse promises: clean operands, and nothing private.
func checkNodes(t *testing.T, nodes []node, depth int) {
	for i := range nodes {
		c := &nodes[i].condition
		for _, v := range append(slices.Clone(c.predicate.list), c.predicate.want) {
			if len(v) == 0 {
				continue
			}
			clean, err := data.Clean(slices.Clone(v))
			require.True(t, err == nil && clean.String() == v.String(), "the filter compares with %s, which is not clean: %v", v, err)
		}
		require.False(t, nodes[i].kind == isCondition && c.root == rootPrivate, "the filter looks at private data")
		checkNodes(t, nodes[i].nodes, depth+1)
		checkNodes(t, c.predicate.nodes, depth+1)
	}
}
